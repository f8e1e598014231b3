# Runs a program until its own input ends, then asks it to stop, and kills it if it does not within five seconds.
"$@" </dev/null &
pid=$!
while read -r _; do :; done
kill -s TERM "$pid" 2>/dev/null
tries=0
while kill -0 "$pid" 2>/dev/null && [ "$tries" -lt 100 ]; do sleep 0.05; tries=$((tries + 1)); done
kill -s KILL "$pid" 2>/dev/null
wait "$pid"
