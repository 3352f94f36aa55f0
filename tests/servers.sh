# Sourced by ./test: finds or installs PostgreSQL, starts a private instance on a free port in a folder of its own,
# exports DATABASE_URL, and stops it at the end. Where that is set already, it is used instead. Never touches a server of
# the system.

servers=""

stop_servers() {
    if [ -f "$servers/postgres/postmaster.pid" ]; then
        kill -INT "$(head -n 1 "$servers/postgres/postmaster.pid")" 2>/dev/null || true
    fi
    if [ -n "$servers" ]; then
        wait 2>/dev/null || true
        rm -rf "$servers"
    fi
}

# Installs Debian packages where this machine has them and lets us.
install_packages() {
    local sudo=""
    command -v apt-get >/dev/null || return 1
    if [ "$(id -u)" -ne 0 ]; then
        sudo -n true 2>/dev/null || return 1
        sudo="sudo -n"
    fi
    $sudo env DEBIAN_FRONTEND=noninteractive apt-get install --yes --quiet "$@" >target/install.txt 2>&1 ||
        { $sudo apt-get update --quiet >>target/install.txt 2>&1 &&
            $sudo env DEBIAN_FRONTEND=noninteractive apt-get install --yes --quiet "$@" >>target/install.txt 2>&1; }
}

free_port() {
    local port
    while :; do
        port=$((20000 + RANDOM % 20000))
        (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || { echo "$port"; return; }
    done
}

# Debian keeps the server's programs out of the search path, one folder a version.
postgres_programs() {
    local folder
    for folder in "$(dirname "$(command -v initdb 2>/dev/null)" 2>/dev/null)" /usr/lib/postgresql/*/bin; do
        [ -x "$folder/initdb" ] && [ -x "$folder/postgres" ] && [ -x "$folder/pg_isready" ] && { echo "$folder"; return; }
    done
    return 1
}

# PostgreSQL refuses to run as root.
as_postgres() {
    if [ "$(id -u)" -eq 0 ]; then
        setpriv --reuid postgres --regid postgres --clear-groups "$@"
    else
        "$@"
    fi
}

start_postgres() {
    local programs port
    programs=$(postgres_programs) || { install_packages postgresql && programs=$(postgres_programs); } || return 1
    "$programs/postgres" --version
    export POSTGRES_PROGRAMS="$programs"
    mkdir -p "$servers/postgres"
    [ "$(id -u)" -eq 0 ] && chown postgres "$servers" "$servers/postgres"
    as_postgres "$programs/initdb" --pgdata "$servers/postgres" --auth trust --username postgres --encoding UTF8 \
        --locale C --no-sync >"$servers/initdb.txt" 2>&1 || { cat "$servers/initdb.txt"; return 1; }
    port=$(free_port)
    as_postgres "$programs/postgres" -D "$servers/postgres" -p "$port" -c listen_addresses=127.0.0.1 \
        -c unix_socket_directories="$servers" -c max_connections=200 >"$servers/postgres.txt" 2>&1 &
    for _ in $(seq 100); do
        if "$programs/pg_isready" --quiet --host 127.0.0.1 --port "$port"; then
            export DATABASE_URL="postgres://postgres@127.0.0.1:$port/postgres"
            return
        fi
        sleep 0.1
    done
    cat "$servers/postgres.txt"
    return 1
}

start_servers() {
    servers=$(mktemp -d)
    chmod 755 "$servers"
    trap stop_servers EXIT
    if [ -n "${DATABASE_URL:-}" ]; then
        echo "PostgreSQL: the one that DATABASE_URL names"
    else
        start_postgres || not_run "what needs PostgreSQL (apt-get install postgresql)"
    fi
}
