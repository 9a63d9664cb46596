#!/bin/sh
# Before a removal, which dpkg calls "remove" and rpm calls 0: the service ends. Recordings stay.
case ${1:-} in
remove | 0) ;;
*) exit 0 ;;
esac
[ -d /run/systemd/system ] || exit 0
systemctl disable --now holdup.service || true
