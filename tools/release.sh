#!/usr/bin/env bash
# Makes a release of all modules of this repository, or tries whether one can be made:
#
#   tools/release.sh          makes one in a temporary clone, with the version that would be next, and installs everything from it
#   tools/release.sh v0.2.0   does the same, and then takes the commits and tags over into the repository
#
# Nothing is pushed. A release is two commits. The first is what the tags name: its changelog has the version, the go.mod files
# require that version of each other, and no replace directives are left. The second brings these back.
#
# A module is released unless the first line of its go.mod says "// Not released". Modules are found, not listed.
set -euo pipefail

root=github.com/holdfast-go/holdfast
repository=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT # a module cache is read-only
clone=$work/holdfast proxy=$work/proxy
cache=$(go env GOMODCACHE) upstream=$(go env GOPROXY)
export GOWORK=off GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=url.file://$clone.insteadOf GIT_CONFIG_VALUE_0=https://$root

say() { echo "release: $*" >&2; }
fail() {
	say "$@"
	exit 1
}

commit() { git -C "$clone" add --all && git -C "$clone" commit --quiet --allow-empty --message "$1"; }

# A module is called by its folder.
path() { [ "$1" = . ] && echo "$root" || echo "$root/$1"; }
tag() { [ "$1" = . ] && echo "$version" || echo "$1/$version"; }
private() { head -n 1 "$clone/$1/go.mod" | grep -q '^// Not released'; }
# The modules of ours that its go.mod requires, by their paths.
needs() { sed -nE "s#^(require |\t)($root(/[^ ]+)?) v.*#\2#p" "$clone/$1/go.mod"; }
edit() { (cd "$clone/$1" && go mod edit "${@:2}"); }

# The go command itself makes what a proxy serves: it is told that the clone is the repository on GitHub.
serve() { (cd "$work" && GOMODCACHE=$proxy GOPROXY=direct GONOSUMDB=$root GOFLAGS='' go mod download "$(path "$1")@$version"); }

# The go command of somebody who installs the release: our modules come from what is served, and all others from this machine's
# module cache or from its usual proxy.
consumer() {
	GOMODCACHE=$work/modcache GOPROXY=file://$proxy/cache/download,file://$cache/cache/download,$upstream \
		GONOSUMDB=$root,${GONOSUMDB-} GOFLAGS=${consumer_flags-} GOBIN=$work/bin go "$@"
}

making=${1-} version=${1-}
if [ -z "$version" ]; then # the one after the last
	last=$(git -C "$repository" tag --list 'v*' --sort=-version:refname | head -n 1)
	version=$(echo "${last:-v0.0.0}" | awk -F. '{print $1 "." $2 + 1 ".0"}')
fi
[[ $version =~ ^v[01]\.[0-9]+\.[0-9]+$ ]] || fail "the version is v0.x.y or v1.x.y; from v2 on, module paths would have to end in /v2"

git clone --quiet "$repository" "$clone"
changed=$(git -C "$repository" status --porcelain)
if [ -n "$changed" ]; then # a check takes it along
	[ -z "$making" ] || fail "a release is made of what is committed, and this is not:"$'\n'"$changed"
	git -C "$clone" rm -rq .
	(cd "$repository" && git ls-files -z --cached --others --exclude-standard --deduplicate |
		while IFS= read -r -d '' file; do [ ! -e "$file" ] || printf '%s\0' "$file"; done | tar -c --null -T -) | tar -x -C "$clone"
	commit "What is not committed"
fi
base=$(git -C "$clone" rev-parse HEAD)

mapfile -t all < <(cd "$clone" && find . -name go.mod -not -path '*/testdata/*' -not -path './.*/*' -printf '%h\n' | sed 's#^\./##' | sort)
# Each that is released comes after those that it needs.
mapfile -t released < <(for m in "${all[@]}"; do
	private "$m" || (path "$m" && needs "$m") | sed "s#\$# $(path "$m")#"
done | tsort | sed "s#^$root/##; s#^$root\$#.#")
for m in "${released[@]}"; do
	[ -f "$clone/$m/go.mod" ] && ! private "$m" || fail "what is released needs $m, which is not"
done

# What is not released yet gets the version's section in the changelog.
news=$(sed '1,/^## \[Unreleased\]$/d; /^## /,$d' "$clone/CHANGELOG.md")
grep -q '^- ' <<<"$news" || fail "CHANGELOG.md has nothing under [Unreleased]"
sed -i "s/^## \[Unreleased\]\$/&\n\n## [${version#v}] - $(date --utc +%F)/" "$clone/CHANGELOG.md"

for m in "${all[@]}"; do
	for need in $(needs "$m"); do
		edit "$m" -require "$need@$version"
		private "$m" || edit "$m" -dropreplace "$need"
	done
done

# The go.sum of a module has the hashes of the modules that it needs, so these come first: each is tagged for the moment, and
# served. The hash of a module does not depend on the modules inside its folder.
for m in "${released[@]}"; do
	[ -z "$(needs "$m")" ] || (cd "$clone/$m" && consumer_flags=-mod=mod consumer mod tidy)
	commit "For the moment"
	git -C "$clone" tag --force "$(tag "$m")" >/dev/null
	serve "$m"
done
chmod -R u+w "$proxy"
rm -rf "$proxy"
git -C "$clone" reset --quiet --soft "$base"

commit "Release $version"
for m in "${released[@]}"; do
	git -C "$clone" tag --force --annotate --message "Release $(tag "$m")" "$(tag "$m")" >/dev/null
	serve "$m"
	say "tagged $(tag "$m")"
done
for m in "${released[@]}"; do # go.sum has the hashes of what the tags are
	for need in $(needs "$m"); do
		hash=$(cat "$proxy/cache/download/$need/@v/$version.ziphash")
		grep -qxF "$need $version $hash" "$clone/$m/go.sum" || fail "$m/go.sum lacks $need $version $hash"
	done
done

for m in "${released[@]}"; do
	[ -n "$(needs "$m")" ] || continue
	git -C "$clone" checkout --quiet "$base" -- "$m/go.mod" "$m/go.sum"
	for need in $(needs "$m"); do edit "$m" -require "$need@$version"; done
done
commit "Back to development after $version"

# project does something in an empty project of somebody else. Nobody may ask for its status: "set -e" would not count inside it.
project() {
	local what=$1 status
	set +e
	(
		set -e
		cd "$(mktemp -d "$work/project-XXXX")"
		consumer mod init example.test/project
		"${@:2}"
	) >"$work/log" 2>&1
	status=$?
	set -e
	[ "$status" -eq 0 ] || fail "$what does not work:"$'\n'"$(cat "$work/log")"
	say "$what works"
}

# install adds a module to a project that imports all its packages, and installs its programs.
install() {
	local list program
	list=$(cd "$clone/$1" && go list -f '{{if .GoFiles}}{{.Name}} {{.ImportPath}}{{end}}' ./...)
	awk -v q='"' 'BEGIN {print "package main\n\nimport ("} $1 != "main" && $2 "/" !~ "/internal/" {print "\t_ " q $2 q} END {print ")\n\nfunc main() {}"}' \
		<<<"$list" >main.go
	consumer get "$(path "$1")@$version"
	consumer mod tidy
	consumer build -o /dev/null .
	for program in $(awk '$1 == "main" {print $2}' <<<"$list"); do consumer install "$program@$version"; done
}

# follow does what a page says: its "go get" lines, and then its code, with its tests. The comment above the code names the file that
# has all of it; a test of the examples compares the two.
follow() {
	local files file get
	files=$(sed -nE 's#^<!-- examples/(.*) -->$#\1#p' "$clone/$1" | sort -u)
	[ -n "$files" ] # else it names no file
	[[ $files != *pages_code_test.go* ]] || files+=" readme_code_test.go" # whose handler it uses
	for get in $(sed -nE 's/^ *go get ([^ ]+).*/\1/p' "$clone/$1"); do consumer get "$get@$version"; done
	for file in $files; do # with what protoc has generated for it
		sed "s#\"$root/examples/demo/shoppb\"#\"example.test/project/shoppb\"#" "$clone/examples/$file" >"$(basename "$file")"
	done
	if grep -q example.test/project/shoppb -- *.go; then cp -r "$clone/examples/demo/shoppb" .; fi
	consumer mod tidy # what else the code imports, such as Echo, is in the project that has such code, with that version
	consumer vet .
	consumer test .
}

for m in "${released[@]}"; do project "go get $(path "$m")@$version" install "$m"; done
# The guides share one file, but for testing.md, whose tests run. So functions.md stands for all of them.
for page in README.md README.zh-CN.md docs/getting-started.md docs/guides/functions.md docs/guides/testing.md; do
	project "what $page shows" follow "$page"
done

if [ -z "$making" ]; then
	say "$version can be released: ${#released[@]} modules"
	exit
fi
git -C "$repository" pull --quiet --ff-only --tags "$clone" HEAD
say "made; nothing is published before you say:"$'\n\n\t'"git push --atomic origin HEAD $(for m in "${released[@]}"; do tag "$m"; done | tr '\n' ' ')"
