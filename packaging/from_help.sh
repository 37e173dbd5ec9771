#!/bin/sh
# Man page and completions, from the table that the program prints of its help:
#   from_help.sh PROGRAM FOLDER [DATE]
# writes trivelet.1, trivelet.bash, _trivelet (zsh) and trivelet.fish. Needs the program and awk. DATE (YYYY-MM-DD) is the
# man page's, else SOURCE_DATE_EPOCH or today's. EMULATOR in the environment runs a program of another processor.
set -eu
program=$1
out=$2
date=${3:-$(date -u -d "@${SOURCE_DATE_EPOCH:-$(date +%s)}" +%Y-%m-%d)}
mkdir -p "$out"
table=$out/help.tsv

# trivelet ARGUMENTS...
trivelet() {
  # shellcheck disable=SC2086  # a command with its options
  ${EMULATOR-} "$program" "$@"
}

# Lines of: command, kind, names, value, text; TAB between.
trivelet help --table >"$table"

# ---- man page
awk -F '\t' -v date="$date" -v version="$(trivelet --version | awk 'NR == 1 { print $2 }')" '
  function roff(s) { gsub(/\\/, "\\e", s); gsub(/-/, "\\-", s); if (s ~ /^[.\x27]/) s = "\\&" s; return s }
  BEGIN {
    printf ".TH TRIVELET 1 %s \"Trivelet %s\" \"User Commands\"\n", date, version
  }
  $1 == "" && $2 == "about" { print ".SH NAME"; s = $5; sub(/^trivelet: /, "", s); print "trivelet \\- " roff(s)
    print ".SH SYNOPSIS"; print ".B trivelet\n.I COMMAND\n[options] ..." ; print ".SH DESCRIPTION"
    print "Encodes video and volumes into streams of which lower sizes, frame rates and qualities are parts, and decodes them." }
  $1 == "" && $2 == "heading" { print ".SH " toupper($5) }
  $1 != "" && $2 == "about" { print (first++ ? "" : ".SH COMMANDS\n") ".SS trivelet " roff($1); about = $5 }
  $1 != "" && $2 == "usage" { print ".B " roff($5); print ".PP"; print roff(about) }
  $1 != "" && $2 == "heading" { print ".PP\n.I " roff($5) }
  $2 == "option" || $2 == "positional" || ($2 == "command" && $1 != "") {
    print ".TP"; print ".BR " roff($3) ($4 == "" ? "" : " \" \" \"" roff($4) "\""); print roff($5) }
  $1 != "" && $2 == "footer" { print ".PP"; print roff($5) }
  $2 == "example" { examples = examples ".TP\n.B " roff($4) "\n" roff($5) "\n" }
  $2 == "environment" { environment = environment ".TP\n.B " roff($3) "\n" roff($5) "\n" }
  $1 == "" && $2 == "footer" { last = last (last == "" ? "" : "\n.br\n") roff($5) }
  END {
    print ".SH EXIT STATUS AND HELP"; print last
    printf ".SH EXAMPLES\n%s.SH ENVIRONMENT\n%s", examples, environment
    print ".SH SEE ALSO\n.BR ffmpeg (1),\n.BR vlc (1),\n.BR gst\\-launch\\-1.0 (1),\n.BR h5repack (1),\n.BR mpirun (1)"
  }' "$table" >"$out/trivelet.1"

# ---- bash
awk -F '\t' '
  $2 == "option" { n = split($3, name, ","); for (i = 1; i <= n; ++i) options[$1] = options[$1] " " name[i]
    if ($4 ~ /^[^A-Z]*\|[^A-Z]*$/) for (i = 1; i <= n; ++i) { values = $4; gsub(/\|/, " ", values); choices[$1, name[i]] = values; keys[++m] = $1 SUBSEP name[i] }
  }
  $2 == "command" { below[$1] = below[$1] " " $3 }
  { if (!($1 in seen)) { seen[$1] = 1; order[++k] = $1 } }
  END {
    print "# Completion of trivelet for bash, made from its --help."
    print "_trivelet() {"
    print "  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} command= word i"
    print "  COMPREPLY=()"
    print "  for ((i = 1; i < COMP_CWORD; ++i)); do"
    print "    word=${COMP_WORDS[i]}"
    print "    case \"$command $word\" in"
    for (c = 1; c <= k; ++c) { n = split(below[order[c]], b, " "); for (i = 1; i <= n; ++i)
      print "      \"" order[c] " " b[i] "\") command=\"" (order[c] == "" ? "" : order[c] " ") b[i] "\" ;;" }
    print "    esac"
    print "  done"
    print "  case \"$command $previous\" in"
    for (i = 1; i <= m; ++i) { split(keys[i], p, SUBSEP)
      print "    \"" p[1] " " p[2] "\") mapfile -t COMPREPLY < <(compgen -W \"" choices[p[1], p[2]] "\" -- \"$current\"); return ;;" }
    print "  esac"
    print "  local options= commands="
    print "  case \"$command\" in"
    for (c = 1; c <= k; ++c)
      print "    \"" order[c] "\") options=\"" substr(options[order[c]], 2) "\" commands=\"" substr(below[order[c]], 2) "\" ;;"
    print "  esac"
    print "  if [[ $current == -* ]]; then"
    print "    mapfile -t COMPREPLY < <(compgen -W \"$options\" -- \"$current\")"
    print "  elif [[ $previous == -* ]]; then"
    print "    mapfile -t COMPREPLY < <(compgen -f -- \"$current\")"
    print "  else"
    print "    mapfile -t COMPREPLY < <(compgen -W \"$commands\" -- \"$current\"; [[ -z $command ]] || compgen -f -- \"$current\")"
    print "  fi"
    print "}"
    print "complete -o filenames -F _trivelet trivelet"
  }' "$table" >"$out/trivelet.bash"

# ---- zsh
awk -F '\t' '
  function quoted(s) { gsub(/\x27/, "\x27\\\x27\x27", s); gsub(/[\[\]:]/, "\\\\&", s); return s }
  $2 == "option" { n = split($3, name, ",")
    for (i = 1; i <= n; ++i) {
      spec = "\x27" name[i] "[" quoted($5) "]"
      if ($4 ~ /^[^A-Z]*\|[^A-Z]*$/) { v = $4; gsub(/\|/, " ", v); spec = spec ":value:(" v ")" } else if ($4 != "") spec = spec ":" quoted($4) ":_files"
      specs[$1] = specs[$1] " \\\n        " spec "\x27" } }
  $2 == "command" { below[$1] = below[$1] " \\\n        \x27" $3 ":" quoted($5) "\x27" }
  { if (!($1 in seen)) { seen[$1] = 1; order[++k] = $1 } }
  END {
    print "#compdef trivelet"
    print "# Completion of trivelet for zsh, made from its --help."
    print "_trivelet() {"
    print "  local command= word"
    print "  for word in ${words[2,CURRENT-1]}; do"
    print "    case \"$command $word\" in"
    for (c = 1; c <= k; ++c) { s = below[order[c]]; while (match(s, /\x27[^:\x27]+:/)) { w = substr(s, RSTART + 1, RLENGTH - 2)
      print "      \"" order[c] " " w "\") command=\"" (order[c] == "" ? "" : order[c] " ") w "\" ;;"
      s = substr(s, RSTART + RLENGTH); sub(/^[^\n]*/, "", s) } }
    print "    esac"
    print "  done"
    print "  local -a below"
    print "  case \"$command\" in"
    for (c = 1; c <= k; ++c) {
      print "    \"" order[c] "\")"
      if (below[order[c]] != "") print "      below=(" substr(below[order[c]], 2) ")\n      _describe command below"
      print "      _arguments" (specs[order[c]] == "" ? "" : specs[order[c]]) " \\\n        \x27*:file:_files\x27 ;;" }
    print "  esac"
    print "}"
    print "_trivelet \"$@\""
  }' "$table" >"$out/_trivelet"

# ---- fish
awk -F '\t' '
  function quoted(s) { gsub(/\\/, "\\\\", s); gsub(/\x27/, "\\\x27", s); return s }
  $2 == "command" { if ($1 == "") top = top " " $3; else under[$1] = under[$1] " " $3 }
  { line[NR] = $0 }
  END {
    print "# Completion of trivelet for fish, made from its --help."
    for (r = 1; r <= NR; ++r) {
      split(line[r], f, "\t")
      if (f[1] == "") when = "not __fish_seen_subcommand_from" top
      else { n = split(f[1], w, " "); when = "__fish_seen_subcommand_from " w[1]
        if (n == 2) when = when "; and __fish_seen_subcommand_from " w[2] }
      if (f[2] == "command") {
        if (f[1] != "") when = when "; and not __fish_seen_subcommand_from" under[f[1]]
        printf "complete -c trivelet -n \x27%s\x27 -f -a %s -d \x27%s\x27\n", when, f[3], quoted(f[5])
      } else if (f[2] == "option") {
        names = ""; n = split(f[3], name, ",")
        for (i = 1; i <= n; ++i) names = names (name[i] ~ /^--/ ? " -l " substr(name[i], 3) : " -s " substr(name[i], 2))
        value = ""
        if (f[4] ~ /^[^A-Z]*\|[^A-Z]*$/) { v = f[4]; gsub(/\|/, " ", v); value = " -x -a \x27" v "\x27" } else if (f[4] != "") value = " -r"
        printf "complete -c trivelet -n \x27%s\x27%s%s -d \x27%s\x27\n", when, names, value, quoted(f[5])
      }
    }
  }' "$table" >"$out/trivelet.fish"
