
complete -c holdup -n "__fish_seen_subcommand_from explain" -f -a "(holdup candidates causes (commandline -ct) 2>/dev/null)"
complete -c holdup -n "__fish_seen_subcommand_from lab" -f -a "(holdup candidates labs (commandline -ct) 2>/dev/null)"
complete -c holdup -n "__fish_seen_subcommand_from diagnose report compare" -f -a "(holdup candidates recordings (commandline -ct) 2>/dev/null)"
