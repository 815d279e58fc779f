import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { packTar, type TarEntry, unpackTar } from 'modern-tar';
import type { Pod } from '../../../../src/api/generated/core/v1.ts';
import { addDebugContainer, containerState } from '../../../../src/console/data/pods/debug.ts';
import { attachPath, execPath, runCommand } from '../../../../src/console/data/pods/exec.ts';
import {
  checkFileName,
  checkPath,
  download,
  localName,
  type RunCommand,
  upload,
} from '../../../../src/console/data/pods/transfer.ts';
import { FakeApi, json } from '../fake-api.ts';
import { FakeSocket } from '../fake-socket.ts';

const options = () => ({ signal: new AbortController().signal, onProgress: () => undefined });

/** A container that answers `tar -c` with an archive in chunks of an odd size. */
const containing =
  (archive: Uint8Array, error?: Error): RunCommand =>
  async (_command, { onOutput, signal }) => {
    for (let from = 0; from < archive.length; from += 700) {
      signal.throwIfAborted();
      await onOutput?.(archive.subarray(from, from + 700));
    }
    if (error !== undefined) throw error;
  };

const file = (name: string, body: string): TarEntry => ({
  header: { name, size: new TextEncoder().encode(body).length, type: 'file' },
  body,
});
const archiveOf = (...entries: TarEntry[]): Promise<Uint8Array> => packTar(entries);

suite('a download from a container', () => {
  test('downloads a file unchanged, and a directory as an archive without links', async () => {
    const commands: (readonly string[])[] = [];
    const archive = await archiveOf(file('app.log', 'hello'));
    const run: RunCommand = (command, streams) => {
      commands.push(command);
      return containing(archive)(command, streams);
    };
    const one = await download(run, '/var/log/app.log', options());
    assert.deepEqual([one.name, await one.blob.text(), one.skipped], ['app.log', 'hello', 0]);
    assert.deepEqual(commands, [['tar', '-cf', '-', '-C', '/var/log', '--', 'app.log']]);

    const tree = await archiveOf(
      { header: { name: 'etc/', size: 0, type: 'directory' } },
      file('etc/passwd', 'root'),
      { header: { name: 'etc/out', size: 0, type: 'symlink', linkname: '../../../host' } },
      { header: { name: 'etc/hard', size: 0, type: 'link', linkname: '/etc/shadow' } },
    );
    const all = await download(containing(tree), '/etc', options());
    const found = await unpackTar(new Uint8Array(await all.blob.arrayBuffer()));
    assert.deepEqual([all.name, all.skipped], ['etc.tar', 2]);
    assert.deepEqual(
      found.map(({ header, data }) => [header.name, header.type, data && new TextDecoder().decode(data)]),
      [
        ['etc/', 'directory', undefined],
        ['etc/passwd', 'file', 'root'],
      ],
    );
  });

  test('a download refuses entries with hostile names, and links instead of the requested file', async () => {
    const hostile = [
      '../etc/passwd',
      '/etc/passwd',
      'etc/../../x',
      'etc//x',
      'etc/./x',
      'other/x',
      'etc\\..\\x',
      'etc/a\\b',
    ];
    for (const name of hostile) {
      const archive = await archiveOf({ header: { name: 'etc/', size: 0, type: 'directory' } }, file(name, 'x'));
      await assert.rejects(download(containing(archive), '/etc', options()), /the archive is refused/, name);
    }
    const link = await archiveOf({ header: { name: 'log', size: 0, type: 'symlink', linkname: '/etc/shadow' } });
    await assert.rejects(download(containing(link), '/var/log', options()), /log: is a symlink to \/etc\/shadow/);
    const two = await archiveOf(file('log', 'a'), file('log', 'b'));
    await assert.rejects(download(containing(two), '/var/log', options()), /other entries/);
  });

  test('shows escape sequences in names of files as text', async () => {
    const archive = await archiveOf(file('etc/../\u001b]52;c;AAAA\u0007\u202Ex', 'x'));
    await assert.rejects(download(containing(archive), '/etc', options()), (error: Error) => {
      assert.doesNotMatch(error.message, /\p{Cc}|\p{Cf}/u);
      return true;
    });
  });

  test('stops the command of a download at the size limit', async () => {
    const archive = await archiveOf(file('big', 'x'.repeat(20_000)));
    let sent = 0;
    const run: RunCommand = async (_command, { onOutput }) => {
      for (let from = 0; from < archive.length; from += 512) {
        sent += 512;
        await onOutput?.(archive.subarray(from, from + 512));
      }
    };
    await assert.rejects(download(run, '/big', { ...options(), maxBytes: 4_096 }), /big: exceeds 4 KiB/);
    assert.ok(sent <= 4_608, `${sent}`);
  });

  test('a failed download reports the error of the command instead of the missing archive', async () => {
    const failing = containing(new Uint8Array(0), new Error('tar: nope: No such file or directory'));
    await assert.rejects(download(failing, '/nope', options()), /No such file/);
    await assert.rejects(download(containing(new Uint8Array(1_024)), '/nope', options()), /empty archive/);
  });
});

suite('an upload to a container', () => {
  const local = (name: string, body: string) => Object.assign(new Blob([body]), { name, lastModified: 0 });

  test('uploads plain files with their names and reports progress', async () => {
    const received: Uint8Array[] = [];
    let command: readonly string[] = [];
    const run: RunCommand = async (words, { input }) => {
      command = words;
      for await (const chunk of input ?? []) received.push(new Uint8Array(chunk));
    };
    let done = 0;
    const onProgress = (progress: { done: number }): void => {
      done = progress.done;
    };
    await upload(run, [local('-rf', 'a'), local('ü.txt', 'b'.repeat(200_000))], '/tmp/', { ...options(), onProgress });
    assert.deepEqual(command, ['tar', '-xmf', '-', '-C', '/tmp']);
    const found = await unpackTar(new Uint8Array(await new Blob(received as BlobPart[]).arrayBuffer()));
    assert.deepEqual(
      found.map(({ header, data }) => [header.name, header.type, data?.length]),
      [
        ['-rf', 'file', 1],
        ['ü.txt', 'file', 200_000],
      ],
    );
    assert.equal(done, 200_001);
  });

  test('an upload refuses hostile names, relative directories and too much data before it starts', async () => {
    const never: RunCommand = () => assert.fail('the command was run');
    const names = ['', '.', '..', '../x', 'a/b', 'a\\b', 'a\0b', 'x'.repeat(101), 'ü'.repeat(51)];
    for (const name of names) {
      assert.throws(() => checkFileName(name), JSON.stringify(name));
      await assert.rejects(upload(never, [local(name, 'x')], '/tmp', options()), JSON.stringify(name));
    }
    for (const path of ['', 'tmp', '--to-command=sh', '/tmp/../etc', '/a\0b', `/${'x'.repeat(5_000)}`])
      assert.throws(() => checkPath(path), path.slice(0, 20));
    await assert.rejects(
      upload(never, [local('a', 'x'), local('a', 'y')], '/tmp', options()),
      /two have the same name/,
    );
    await assert.rejects(
      upload(never, [local('a', 'xxxx')], '/tmp', { ...options(), maxBytes: 3 }),
      /exceed the limit of 3 B/,
    );
  });
});

test('names of downloads have no separators, control characters or leading dots', () => {
  assert.equal(localName('..\u202Egpj.exe'), '__gpj.exe');
  assert.equal(localName('a/b\\c:d\n'), 'a_b_c_d_');
  assert.equal(localName(''), 'file');
});

suite('a command without a terminal', () => {
  test('a command without a terminal sends its input, and rejects with the error output without escape sequences', async () => {
    const socket = new FakeSocket();
    async function* input(): AsyncGenerator<Uint8Array> {
      yield Uint8Array.of(1, 2);
    }
    const done = runCommand(socket, { input: input(), signal: new AbortController().signal });
    socket.open();
    await new Promise((resolve) => setTimeout(resolve, 5));
    assert.deepEqual(
      socket.sent.map((each) => [...each]),
      [
        [0, 1, 2],
        [255, 0],
      ],
    );
    socket.receive(2, '\u001b]0;evil\u0007tar: denied');
    const status = {
      status: 'Failure',
      message: 'exit 1',
      details: { causes: [{ reason: 'ExitCode', message: '1' }] },
    };
    socket.receive(3, JSON.stringify(status));
    socket.close();
    await assert.rejects(done, { message: 'exit 1: tar: denied' });
  });

  test('a cancelled command without a terminal rejects with the reason of the cancellation', async () => {
    const socket = new FakeSocket();
    const stop = new AbortController();
    const done = runCommand(socket, { signal: stop.signal });
    socket.open();
    stop.abort(new Error('cancelled'));
    await assert.rejects(done, /cancelled/);
    assert.equal(socket.readyState, 3);
  });

  test('a command without a terminal encodes hostile names and arguments in the path', () => {
    const target = { namespace: 'n/../x', pod: 'p?a=b', container: 'c&command=rm', tty: false, stdin: false };
    const url = new URL(execPath({ ...target, command: ['a&command=b', '#'] }), 'https://api.test');
    assert.equal(url.pathname, '/api/v1/namespaces/n%2F..%2Fx/pods/p%3Fa%3Db/exec');
    assert.deepEqual(url.searchParams.getAll('command'), ['a&command=b', '#']);
    assert.equal(url.searchParams.get('container'), 'c&command=rm');
    assert.equal(url.searchParams.get('stdin'), null);
    assert.match(attachPath('n', 'p', 'c&tty=false'), /container=c%26tty%3Dfalse&stdin=true&stdout=true&tty=true$/);
  });
});

suite('a debug container', () => {
  const pod = {
    metadata: { name: 'p', namespace: 'n' },
    spec: { containers: [{ name: 'app' }], ephemeralContainers: [{ name: 'debugger-taken' }] },
  } as Pod;

  test('a debug container is added through the subresource with a free name and a terminal', async () => {
    const server = new FakeApi();
    server.answer = () => json({});
    const suffixes = ['taken', 'free'];
    const request = { image: 'reg/tools:1', command: ' sh  -l ', target: 'app' };
    assert.equal(await addDebugContainer(server.api, pod, request, () => suffixes.shift() ?? ''), 'debugger-free');
    const [sent] = server.requests;
    assert.equal(sent?.url.pathname, '/api/v1/namespaces/n/pods/p/ephemeralcontainers');
    const { spec } = JSON.parse(String(sent?.request.body));
    assert.deepEqual(spec.ephemeralContainers[0], {
      name: 'debugger-free',
      image: 'reg/tools:1',
      stdin: true,
      tty: true,
      imagePullPolicy: 'IfNotPresent',
      terminationMessagePolicy: 'File',
      command: ['sh', '-l'],
      targetContainerName: 'app',
    });
    await assert.rejects(
      addDebugContainer(server.api, pod, { ...request, image: 'a b' }, () => 'x'),
      /Image: use a name/,
    );
    assert.equal(server.requests.length, 1);
  });

  test('the state of a debug container is shown in words', () => {
    const withState = (state: object): Pod => ({
      ...pod,
      status: {
        ephemeralContainerStatuses: [{ name: 'd', image: '', imageID: '', ready: false, restartCount: 0, state }],
      },
    });
    assert.equal(containerState(withState({ running: {} }), 'd').state, 'running');
    assert.match(containerState(withState({ terminated: { exitCode: 2 } }), 'd').reason, /exit code 2/);
    assert.deepEqual(containerState(withState({ waiting: { reason: 'ErrImagePull', message: 'no' } }), 'd'), {
      state: 'starting',
      reason: 'ErrImagePull: no',
    });
    assert.equal(containerState(pod, 'd').state, 'starting');
  });
});
