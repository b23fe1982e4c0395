# devices --probe: measured once, kept in the cache folder
cat >look.py <<'END'
import json

for d in json.load(open("out.json")):
    rates = d.get("rates")
    if not d["usable"]:
        continue
    if not rates:
        print("no rates")
        continue
    print(*sorted(rates), rates["measured"], all(v > 0 for k, v in rates.items() if k != "measured"))
END
look() { "$BRAID" devices --json "$@" >out.json && "$PYTHON" look.py | sort -u; }
look
look --probe --cache-dir kept
look --probe --cache-dir kept
look --probe --cache-dir kept --again
look --probe --no-cache
"$BRAID" devices --probe --cache-dir kept | sed -n 's/  *[0-9][0-9.]* / N /p' | grep '^   *[a-z0-9]* N [a-zA-Z/]*s$' | sort -u
"$BRAID" devices --probe --cache-dir kept | grep -c 'kept from an earlier measurement' | sed 's/[1-9]/some/'
braid devices --probe extra
