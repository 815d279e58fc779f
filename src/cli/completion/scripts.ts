/**
 * Completion scripts of the shells. The scripts contain no list of commands. The hidden command `__complete` prints the
 * candidates, one per line with its help after a tab, and then a line with a colon and directives (file, directory,
 * prefix). The command ends within its own time limit; `timeout` stops an executable that cannot start in time.
 */
const LIMIT_SECONDS = 2;

const BASH = `# bash completion of hyperedge. Set-up: source <(hyperedge completion bash)
_hyperedge() {
  local line=\${COMP_LINE:0:COMP_POINT} program=\${COMP_WORDS[0]/#\\~/$HOME} current='' output directives='' word
  local -a words limit=()
  read -r -a words <<< "$line"
  words=("\${words[@]:1}")
  if [[ $line != *[[:space:]] && \${#words[@]} -gt 0 ]]; then
    current=\${words[-1]}
    unset 'words[-1]'
  fi
  type -P timeout > /dev/null && limit=(timeout ${LIMIT_SECONDS})
  COMPREPLY=()
  output=$("\${limit[@]}" "$program" __complete "\${words[@]}" "$current" 2> /dev/null) || return 0
  # Bash replaces only what follows the last separator.
  local lead=''
  if [[ $current == *[:=]* ]]; then
    lead=\${current%"\${current##*[:=]}"}
    [[ $COMP_WORDBREAKS == *"\${lead: -1}"* ]] || lead=''
  fi
  while IFS=$'\\t' read -r word _; do
    if [[ $word == :* ]]; then directives=$word; continue; fi
    [[ -n $word ]] || continue
    word=\${word#"$lead"}
    # Names of objects may contain any character, and Bash inserts candidates unquoted.
    [[ $word == *[!A-Za-z0-9_.,:/=@%+-]* ]] && printf -v word %q "$word"
    COMPREPLY+=("$word")
  done <<< "$output"
  local paths=''
  case $directives in *file*) paths=-f ;; *directory*) paths=-d ;; esac
  if [[ -n $paths ]]; then
    compopt -o filenames 2> /dev/null
    while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen "$paths" -- "\${current#"$lead"}")
  fi
  case $directives in *prefix*) compopt -o nospace 2> /dev/null ;; esac
  return 0
}
complete -F _hyperedge hyperedge
`;

const ZSH = `#compdef hyperedge
# zsh completion of hyperedge. Set-up: source <(hyperedge completion zsh), after compinit
_hyperedge() {
  local output directives='' value help line
  local -a limit shown space
  (( $+commands[timeout] )) && limit=(timeout ${LIMIT_SECONDS})
  output=$("\${limit[@]}" "\${(Q)words[1]/#\\~/$HOME}" __complete "\${(@Q)words[2,CURRENT-1]}" "\${(Q)PREFIX}" 2> /dev/null) || return 1
  for line in "\${(@f)output}"; do
    if [[ $line == :* ]]; then directives=$line; continue; fi
    [[ -n $line ]] || continue
    value=\${line%%$'\\t'*}
    help=\${line#$value}
    help=\${help#$'\\t'}
    shown+=("\${value//:/\\\\:}\${help:+:$help}")
  done
  [[ $directives == *prefix* ]] && space=(-S '')
  (( $#shown )) && _describe -V 'value' shown "\${space[@]}"
  case $directives in
    *file*) compset -P '*='; _files ;;
    *directory*) compset -P '*='; _files -/ ;;
  esac
}
if [[ $funcstack[1] == _hyperedge ]]; then _hyperedge "$@"; else compdef _hyperedge hyperedge; fi
`;

const FISH = `# fish completion of hyperedge. Set-up: hyperedge completion fish | source
function __hyperedge_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l limit
    command -q timeout; and set limit timeout ${LIMIT_SECONDS}
    set -l output ($limit $words[1] __complete $words[2..-1] "$current" 2> /dev/null); or return
    for line in $output
        switch $line
            case ':*file*'
                __fish_complete_path (string replace -r '^--[^=]*=' '' -- "$current")
            case ':*directory*'
                __fish_complete_directories (string replace -r '^--[^=]*=' '' -- "$current")
            case ':*'
            case '*'
                echo $line
        end
    end
end
complete -c hyperedge -f -k -a '(__hyperedge_complete)'
`;

export const SHELLS = ['bash', 'zsh', 'fish'] as const;
export type Shell = (typeof SHELLS)[number];

const SCRIPTS: Readonly<Record<Shell, string>> = { bash: BASH, zsh: ZSH, fish: FISH };

export const completionScript = (shell: Shell): string => SCRIPTS[shell];
