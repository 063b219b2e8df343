#!/usr/bin/env bash
# Makes the certificates of the tests anew: an authority, a server (localhost, 127.0.0.1) and a client of it, and a client of nobody's. Keys that
# are here are for tests alone.
set -euo pipefail
cd "$(dirname "$0")"
days=36500
key() { openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out "$1.key.pem" 2>/dev/null; }
own() { key "$1"; openssl req -x509 -new -key "$1.key.pem" -subj "/CN=$1" -days "$days" -out "$1.pem" -addext basicConstraints=critical,CA:"$2" 2>/dev/null; }
signed() {
    key "$1"
    openssl req -new -key "$1.key.pem" -subj "/CN=$1" 2>/dev/null |
        openssl x509 -req -CA ca.pem -CAkey ca.key.pem -days "$days" -out "$1.pem" \
            -extfile <(printf 'basicConstraints=critical,CA:FALSE\nextendedKeyUsage=%s\nsubjectAltName=%s\n' "$2" "$3") 2>/dev/null
}
own ca TRUE
signed server serverAuth DNS:localhost,IP:127.0.0.1
signed client clientAuth DNS:client
own stranger FALSE
rm ca.key.pem
