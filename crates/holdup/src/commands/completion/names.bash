
_holdup_names() {
    local current="${COMP_WORDS[COMP_CWORD]}" before="${COMP_WORDS[COMP_CWORD-1]}" kind=""
    case "${COMP_WORDS[1]}" in
        explain) kind=causes ;;
        lab) kind=labs ;;
        diagnose|report|compare) kind=recordings ;;
    esac
    if [[ -n "$kind" && "$COMP_CWORD" -gt 1 && "$current" != -* && ( "$before" != -* || "$before" == --against ) ]]; then
        local IFS=$'\n'
        COMPREPLY=($("${COMP_WORDS[0]}" candidates "$kind" "$current" 2>/dev/null))
        if [[ ${#COMPREPLY[@]} -gt 0 ]]; then
            [[ "$kind" == recordings ]] && compopt -o filenames 2>/dev/null
            return 0
        fi
    fi
    _holdup "$@"
}
complete -F _holdup_names -o bashdefault -o default holdup
