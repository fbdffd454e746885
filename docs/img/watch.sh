#!/usr/bin/env bash
# watch.sh OBLIVIO PICTURE: creates a volume, runs four access patterns on it, and takes a screenshot of its watch page
# with both sides visible, during the fourth. SCHEME=dark selects the dark colours.
set -euo pipefail
oblivio=$(realpath "$1"); picture=$(realpath -m "$2")
folder=$(mktemp -d); server=''; driver=''; load=''
# Ends every process that this script started.
finish() {
  [ -z "$load" ] || kill "$load" 2>/dev/null || true
  [ -z "$driver" ] || kill "$driver" 2>/dev/null || true
  [ -z "$server" ] || { kill "$server" 2>/dev/null || true; wait "$server" || true; }
  rm -rf "$folder"
}
trap finish EXIT
cd "$folder"

head -c 32 /dev/urandom > key
"$oblivio" create disk.obl --size 256M --key-file key --state state > /dev/null
# Without a cache, every request reaches storage.
"$oblivio" serve nbd disk.obl --key-file key --state state --cache 0 --watch --watch-secrets --json > said &
server=$!
until [ -s said ]; do sleep 0.1; kill -0 "$server"; done
said() { sed -E "s/.*\"$1\":\"([^\"]*)\".*/\\1/" said; }
uri=$(said uri); page=$(said watch)

# A browser, controlled through WebDriver.
chromedriver --port=0 > driver.log 2>&1 &
driver=$!
until port=$(grep -oE 'started successfully on port [0-9]+' driver.log | grep -oE '[0-9]+$'); do sleep 0.1; kill -0 "$driver"; done
tell() { curl --silent --show-error --fail --header 'Content-Type: application/json' --data "$2" "http://127.0.0.1:$port$1"; }
arguments='"--headless=new","--no-sandbox","--disable-gpu","--hide-scrollbars","--window-size=1280,1000","--no-first-run","--disable-background-networking","--disable-component-update","--disable-sync"'
session=$(tell /session "{\"capabilities\":{\"alwaysMatch\":{\"goog:chromeOptions\":{\"args\":[$arguments]}}}}" \
  | sed -E 's/.*"sessionId":"([^"]*)".*/\1/')
tell "/session/$session/goog/cdp/execute" "{\"cmd\":\"Emulation.setEmulatedMedia\",\"params\":{\"features\":[{\"name\":\"prefers-color-scheme\",\"value\":\"${SCHEME:-light}\"}]}}" > /dev/null
tell "/session/$session/url" "{\"url\":\"$page\"}" > /dev/null

# Requests of 4 KiB, spaced apart on the disk.
use() { fio --name=use --ioengine=nbd --uri="$uri" --bs=4k --rate_iops=90 --time_based --runtime=6 --output=/dev/null "$@"; }
use --rw=write:636k --size=256M                               # writes over the whole disk, in order
use --rw=read:636k --size=256M                                # reads over the whole disk, as a backup does
use --rw=randread --random_distribution=zoned:40/1:0/59:30/1:0/24:30/1:0/14 --size=256M    # reads of a few hot regions
use --rw=read:252k --offset=32M --size=64M --runtime=9 &      # reads in a loop, in the background
load=$!
sleep 7
# Set the window to the full height of the page.
height=$(tell "/session/$session/execute/sync" '{"script":"return Math.ceil(document.body.getBoundingClientRect().height)","args":[]}' | grep -oE '[0-9]+')
tell "/session/$session/goog/cdp/execute" "{\"cmd\":\"Emulation.setDeviceMetricsOverride\",\"params\":{\"width\":1280,\"height\":$height,\"deviceScaleFactor\":1,\"mobile\":false}}" > /dev/null
sleep 0.3
curl --silent --show-error --fail "http://127.0.0.1:$port/session/$session/screenshot" \
  | sed -E 's/.*"value":"([^"]*)".*/\1/' | base64 --decode > shot.png
curl --silent --request DELETE "http://127.0.0.1:$port/session/$session" > /dev/null
wait "$load"; load=''
kill -TERM "$server"; wait "$server"; server=''
mkdir -p "$(dirname "$picture")"
cp shot.png "$picture"
echo "wrote the picture of the page to $picture"
