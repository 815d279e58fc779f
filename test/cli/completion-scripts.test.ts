/** The scripts in real shells, with a stub that records its arguments and prints fixed candidates. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { completionScript, type Shell } from '../../src/cli/completion/scripts.ts';

const isMissing = (shell: Shell): string | false =>
  spawnSync(shell, ['-c', 'true']).status === 0 ? false : `${shell} is not installed`;

describe('completion scripts', () => {
  let directory = '';
  const run = (shell: Shell, args: readonly string[], script: string, input = '', more: string[] = []): string => {
    const { stdout, stderr, status } = spawnSync(shell, [...args, join(directory, script), ...more], {
      cwd: directory,
      encoding: 'utf8',
      input,
      env: { PATH: `${directory}:${process.env['PATH']}`, HOME: directory, TERM: 'dumb' },
      timeout: 60_000,
    });
    assert.equal(status, 0, `${shell}: ${stderr}`);
    return stdout;
  };
  const answer = (text: string): Promise<void> => writeFile(join(directory, 'answer'), text);
  const received = async (): Promise<string[]> =>
    (await readFile(join(directory, 'received'), 'utf8')).split('\n').slice(0, -1);

  before(async () => {
    directory = await mkdtemp(join(tmpdir(), 'he-shells-'));
    const stub = join(directory, 'hyperedge');
    await writeFile(stub, `#!/bin/sh\nprintf '%s\\n' "$@" > ${directory}/received\ncat ${directory}/answer\n`);
    await chmod(stub, 0o755);
    await writeFile(join(directory, 'bundle file.tar'), '');
    for (const shell of ['bash', 'zsh', 'fish'] as const)
      await writeFile(join(directory, `script.${shell}`), completionScript(shell));
  });
  after(() => rm(directory, { recursive: true }));

  test('bash passes the words of the line to the executable and offers the printed values', {
    skip: isMissing('bash'),
  }, async () => {
    await writeFile(
      join(directory, 'bash.sh'),
      `source ${directory}/script.bash
complete_line() { # As readline splits it.
  COMP_LINE=$1 COMP_POINT=\${#1}
  read -r -a COMP_WORDS <<< "\${1//[:=]/ & }"
  [[ $1 == *' ' ]] && COMP_WORDS+=('')
  COMP_CWORD=$((\${#COMP_WORDS[@]} - 1))
  _hyperedge
  printf '[%s]' "\${COMPREPLY[@]}"
  echo
}
mapfile -t lines
for line in "\${lines[@]}"; do complete_line "$line"; done
`,
    );
    await answer('pods\tPod\npodtemplates\tPodTemplate\n:\n');
    assert.equal(run('bash', ['--norc'], 'bash.sh', 'hyperedge get -n a po'), '[pods][podtemplates]\n');
    assert.deepEqual(await received(), ['__complete', 'get', '-n', 'a', 'po']);
    run('bash', ['--norc'], 'bash.sh', 'hyperedge get ');
    assert.deepEqual(await received(), ['__complete', 'get', '']);
    await answer('registry.example/app:1\n:\n');
    assert.equal(run('bash', ['--norc'], 'bash.sh', 'hyperedge image pin registry.example/app:'), '[1]\n');
    await answer('--output=json\n:\n');
    assert.equal(run('bash', ['--norc'], 'bash.sh', 'hyperedge status --output=j'), '[json]\n');
    await answer(':file\n');
    assert.equal(run('bash', ['--norc'], 'bash.sh', 'hyperedge bundle verify bund'), '[bundle file.tar]\n');
  });

  test('bash inserts a name with characters of the shell as text', { skip: isMissing('bash') }, async () => {
    await writeFile(
      join(directory, 'quoted.sh'),
      `source ${directory}/script.bash
COMP_LINE='hyperedge get role ' COMP_POINT=19 COMP_WORDS=(hyperedge get role '') COMP_CWORD=3
_hyperedge
for word in "\${COMPREPLY[@]}"; do eval "printf '%s\\n' $word"; done
`,
    );
    const names = [
      '$(touch${IFS}made)',
      ';touch${IFS}made;',
      '`touch${IFS}made`',
      'a>made',
      '{a,b}',
      '*',
      'system:node',
    ];
    await answer(`${names.join('\n')}\n:\n`);
    assert.deepEqual(run('bash', ['--norc'], 'quoted.sh').split('\n').slice(0, -1), names);
    await assert.rejects(readFile(join(directory, 'made')), { code: 'ENOENT' });
  });

  test('bash kills an executable that does not answer', { skip: isMissing('bash') }, async () => {
    await writeFile(
      join(directory, 'late.sh'),
      `source ${directory}/script.bash
COMP_LINE='${directory}/late get ' COMP_POINT=100 COMP_WORDS=(${directory}/late get '') COMP_CWORD=2
_hyperedge; echo "\${#COMPREPLY[@]}"
`,
    );
    await writeFile(join(directory, 'late'), '#!/bin/sh\nexec sleep 60\n');
    await chmod(join(directory, 'late'), 0o755);
    const began = performance.now();
    assert.equal(run('bash', ['--norc'], 'late.sh'), '0\n');
    assert.ok(performance.now() - began < 30_000);
  });

  test('zsh completes a line in a terminal', { skip: isMissing('zsh') }, async () => {
    await writeFile(
      join(directory, '.zshrc'),
      `autoload -Uz compinit; compinit -u -D; source ${directory}/script.zsh
show() { print -r -- "$BUFFER" > ${directory}/buffer; mv ${directory}/buffer ${directory}/shown }
zle -N show; bindkey '^I' complete-word '^T' show
zle-line-init() { : > ${directory}/ready }; zle -N zle-line-init
`,
    );
    await writeFile(
      join(directory, 'zsh.zsh'),
      `zmodload zsh/zpty
wait_for() { repeat 300; do [[ -e ${directory}/$1 ]] && return; zpty -r -t z ignored; sleep 0.1; done }
zpty -b z zsh -d -i
wait_for ready
zpty -w -n z "$1"$'\\t\\x14'
wait_for shown
cat ${directory}/shown
zpty -d z
`,
    );
    await answer('registry.example/app:1\tan image\n:\n');
    const line = 'hyperedge image pin regi';
    assert.equal(run('zsh', ['-f'], 'zsh.zsh', '', [line]), 'hyperedge image pin registry.example/app:1 \n');
    assert.deepEqual(await received(), ['__complete', 'image', 'pin', 'regi']);
  });

  test('fish offers values with their description, and file names', { skip: isMissing('fish') }, async () => {
    await writeFile(
      join(directory, 'fish.fish'),
      `source ${directory}/script.fish
complete -C (cat)
`,
    );
    await answer('pods\tPod\nregistry.example/app:1\n:\n');
    assert.equal(run('fish', ['--no-config'], 'fish.fish', 'hyperedge get -n a po'), 'pods\tPod\n');
    assert.deepEqual(await received(), ['__complete', 'get', '-n', 'a', 'po']);
    await answer(':file\n');
    assert.match(run('fish', ['--no-config'], 'fish.fish', 'hyperedge bundle verify bund'), /bundle\\? file\.tar/);
  });
});
