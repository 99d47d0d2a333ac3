#!/bin/bash
# autoscale.sh POOL ADD REMOVE: one step of an autoscaler, for a timer that runs one at a time. `ADD N` is to make N more
# nodes of the pool and to return when they have joined, `REMOVE NODE` to end one for good; either fails with another
# exit code than 0. Needs jq.
set -u
pool=$1 add=$2 remove=$3
answer=$(berth capacity --idle-for "${IDLE_FOR:-10m}" -o json) || exit $?
ask() { jq -r --arg pool "$pool" ".items[] | select(.pool == \$pool) | $1" <<<"$answer"; }

wanted=$(ask '.wanted // empty | "\(.jobs | length) \(.nodes)"' | sort -k1,1nr -k2,2n | head -n 1)
if [ -n "$wanted" ]; then exec $add "${wanted#* }"; fi # what it makes is looked at in the next step

for node in $(ask '.idle[] | select(.kept_for == "nothing" and (.cordoned | not)).node'); do
  berth cordon "$node" || exit $?
  # Somebody may have started there before the cordon; and who cannot end it gives it back.
  if ! berth nodes "$node" -o json | jq -e '.tasks == []' >/dev/null || ! $remove "$node"; then
    berth uncordon "$node" || exit $?
    continue
  fi
  until berth fence "$node" --yes; do # it is over: no job waits for what was there
    code=$?; [ $code -eq 4 ] || exit $code # 4: berth still hears from it
    sleep 10
  done
done
