#!/bin/sh
# Runs a ClickHouse server on loopback in the foreground, in this very process (the pid stays the same):
#   clickhouse.sh serve DIR PORT    HTTP on PORT; data, log and configuration in DIR, nothing of the machine's own
# What DIR/more.xml has goes into the configuration: HTTPS, a cluster.
# Accounts, as DIR/users.xml has it: `default` without a password may do everything; `reader` (password `r3aderW0rd`) may only
# read, without changing a setting; `writer` (password `wr1terW0rd`) and `hidden` (password `c4naryW0rd`) may do everything,
# too: a server as old as Debian's, of 2018, knows no grants.
set -eu
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin
[ "${1:-}" = serve ] && [ $# -eq 3 ] || {
    echo "usage: clickhouse.sh serve DIR PORT" >&2
    exit 2
}
server=$(command -v clickhouse-server) || {
    echo "clickhouse-server is not here; run: labs/kit/need.sh clickhouse-server" >&2
    exit 3
}
mkdir -p "$2"
dir=$(cd "$2" && pwd)
cat >"$dir/users.xml" <<END
<yandex>
    <profiles><default/><readonly><readonly>1</readonly></readonly></profiles>
    <quotas><default/></quotas>
    <users>
        <default>
            <password></password><networks><ip>127.0.0.1</ip></networks><profile>default</profile><quota>default</quota>
        </default>
        <reader>
            <password>r3aderW0rd</password><networks><ip>127.0.0.1</ip></networks><profile>readonly</profile><quota>default</quota>
        </reader>
        <writer>
            <password>wr1terW0rd</password><networks><ip>127.0.0.1</ip></networks><profile>default</profile><quota>default</quota>
        </writer>
        <hidden>
            <password>c4naryW0rd</password><networks><ip>127.0.0.1</ip></networks><profile>default</profile><quota>default</quota>
        </hidden>
    </users>
</yandex>
END
# The native protocol and that of replicas stay off. Caches are small.
cat >"$dir/config.xml" <<END
<yandex>
    <logger><level>warning</level><log>$dir/log</log><errorlog>$dir/errors</errorlog></logger>
    <listen_host>127.0.0.1</listen_host>
    <http_port>$3</http_port>
    <path>$dir/data/</path>
    <tmp_path>$dir/tmp/</tmp_path>
    <user_files_path>$dir/files/</user_files_path>
    <users_config>$dir/users.xml</users_config>
    <default_profile>default</default_profile>
    <default_database>default</default_database>
    <mark_cache_size>67108864</mark_cache_size>
    <uncompressed_cache_size>0</uncompressed_cache_size>
    <max_concurrent_queries>32</max_concurrent_queries>
    <keep_alive_timeout>3</keep_alive_timeout>
$(cat "$dir/more.xml" 2>/dev/null || true)
</yandex>
END
exec "$server" --config-file="$dir/config.xml"
