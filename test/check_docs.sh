#!/bin/sh
# The reference pages are what the program's tables print; links of the README and the guide lead somewhere.
cd "$(dirname "$0")/.." || exit 1
bin=${1:-build/frazil} fail=0
for page in docs/reference/*.md; do
    topic=$(basename "$page" .md)
    "$bin" options "$topic" | cmp -s - "$page" || { echo "$page is not what 'frazil options $topic' prints: make docs"; fail=1; }
done
for page in README.md docs/guide/*.md; do
    for link in $(grep -o '](\([^)#]*\.md\))' "$page" | sed 's/](\(.*\))/\1/'); do
        [ -r "$(dirname "$page")/$link" ] || { echo "$page: $link is not there"; fail=1; }
    done
done
for page in docs/guide/*.md; do
    grep -q "]($page)" README.md || { echo "README.md does not lead to $page"; fail=1; }
done
[ $fail = 0 ] && echo "docs: reference pages current, links lead somewhere"
exit $fail
