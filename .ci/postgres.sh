# A PostgreSQL server for the tests, sourced by .ci/run: a data folder of its own in a temporary place, reached
# through a socket there that nobody else can open. It leaves a server that the machine already runs alone.

# Prints the folder of the newest server's programs, which Debian keeps off the PATH; nothing if there is none.
postgres_bin() {
  local initdb
  initdb=$(printf '%s\n' /usr/lib/postgresql/*/bin/initdb | sort -V | tail -n 1)
  [ -x "$initdb" ] || initdb=$(command -v initdb || true)
  if [ -x "$initdb" ]; then dirname "$initdb"; fi
}

# PostgreSQL refuses to run as root; its package has made a user for it.
as_postgres() {
  if [ "$(id -u)" -eq 0 ]; then (cd / && runuser -u postgres -- "$@"); else "$@"; fi
}

# Prints the server's address; fails if there is none. Nothing in it need outlive the machine: a database is made and
# dropped for each test, and waiting for the disk would take longer than many a test.
start_postgres() {
  local bin folder=$1
  bin=$(postgres_bin)
  [ -n "$bin" ] || return 1
  if [ "$(id -u)" -eq 0 ]; then chown postgres "$folder" || return 1; fi
  as_postgres "$bin/initdb" --pgdata="$folder/data" --username=postgres --auth=trust --encoding=UTF8 --locale=C \
    >"$folder/initdb.log" 2>&1 || { cat "$folder/initdb.log" >&2; return 1; }
  as_postgres "$bin/pg_ctl" start --wait --silent --pgdata="$folder/data" --log="$folder/server.log" \
    --options="-c listen_addresses= -c unix_socket_directories=$folder -c fsync=off -c full_page_writes=off" >&2 ||
    { cat "$folder/server.log" >&2; return 1; }
  echo "postgresql://postgres@/postgres?host=$folder"
}

stop_postgres() {
  local folder=$1
  if [ -f "$folder/data/postmaster.pid" ]; then
    as_postgres "$(postgres_bin)/pg_ctl" stop --silent --mode=immediate --pgdata="$folder/data" || true
  fi
  rm -rf "$folder"
}
