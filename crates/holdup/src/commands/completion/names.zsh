functions[_holdup_generated]=$functions[_holdup]
_holdup() {
    local kind=""
    case "$words[2]" in
        explain) kind=causes ;;
        lab) kind=labs ;;
        diagnose|report|compare) kind=recordings ;;
    esac
    if [[ -n "$kind" && CURRENT -gt 2 && "$PREFIX" != -* && ( "$words[CURRENT-1]" != -* || "$words[CURRENT-1]" == --against ) ]]; then
        local -a names
        names=("${(@f)$($words[1] candidates "$kind" "$PREFIX" 2>/dev/null)}")
        if [[ -n "$names[1]" ]]; then
            compadd -f -- "${names[@]}"
            return 0
        fi
    fi
    _holdup_generated "$@"
}

