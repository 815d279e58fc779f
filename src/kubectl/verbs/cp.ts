/** `cp` between this host and a container, with `tar` on both sides. Source: k8s.io/kubectl/pkg/cmd/cp. */
import { ClientError } from '../core/errors.ts';
import type { VerbContext } from '../port.ts';
import { withSession } from '../run.ts';
import type { Session } from '../session.ts';
import { connectTerminal, containerOf, runningPod } from './exec.ts';

interface Place {
  readonly namespace: string | undefined;
  readonly pod: string | undefined;
  readonly path: string;
}

export const run = (context: VerbContext): Promise<number> =>
  withSession(context, async (session) => {
    const { args } = context;
    const [source, target, ...more] = args.map(placeOf);
    if (source === undefined || target === undefined || more.length > 0)
      throw new ClientError('source and destination are required');
    if (source.pod !== undefined && target.pod !== undefined)
      throw new ClientError('one of src or dest must be a local file specification');
    if (source.pod === undefined && target.pod === undefined)
      throw new ClientError('one of src or dest must be a remote file specification');
    if (source.path === '' || target.path === '') throw new ClientError('filepath can not be empty');
    return source.pod === undefined ? upload(session, source.path, target) : download(session, source, target.path);
  });

/** `PATH`, `POD:PATH` or `NAMESPACE/POD:PATH`. */
function placeOf(text: string): Place {
  const [, where, path = ''] = /^([^:/.][^:]*):(.*)$/s.exec(text) ?? [];
  if (where === undefined) return { namespace: undefined, pod: undefined, path: text };
  const parts = where.split('/');
  if (parts.length > 2) throw new ClientError(`${text}: must be POD:PATH or NAMESPACE/POD:PATH`);
  return parts.length === 2 ? { namespace: parts[0], pod: parts[1], path } : { namespace: undefined, pod: where, path };
}

const podOf = (session: Session, { namespace, pod = '' }: Place): ReturnType<typeof runningPod> =>
  runningPod(inNamespace(session, namespace), pod);

function inNamespace(session: Session, namespace: string | undefined): Session {
  if (namespace === undefined) return session;
  return Object.create(session, { namespace: { value: namespace } }) as Session;
}

const split = (path: string): readonly [directory: string, name: string] => {
  const clean = path.replace(/\/+$/, '') || '/';
  const at = clean.lastIndexOf('/');
  return at < 0 ? ['.', clean] : [clean.slice(0, at) || '/', clean.slice(at + 1)];
};

async function upload(session: Session, path: string, target: Place): Promise<number> {
  const pod = await podOf(session, target);
  const [directory, name] = split(path);
  const isDirectory = target.path.endsWith('/') || (await isRemoteDirectory(session, pod, target.path));
  const [remoteDirectory, remoteName] = isDirectory
    ? [target.path.replace(/\/+$/, '') || '/', name]
    : split(target.path);
  const archive = session.context.system.tar(
    [
      '-cf',
      '-',
      '-C',
      directory,
      ...(name === remoteName ? [] : [`--transform=s,^${escaped(name)},${escaped(remoteName)},`]),
      '--',
      name,
    ],
    undefined,
  );
  const keep = session.context.flags.bool('no-preserve') ? ['--no-same-permissions', '--no-same-owner'] : [];
  return connectTerminal(session, pod, 'exec', {
    container: containerOf(session, pod),
    command: ['tar', ...keep, '-xmf', '-', '-C', remoteDirectory],
    stdin: true,
    tty: false,
    input: archive,
    onStdout: () => {},
  });
}

const escaped = (text: string): string => text.replaceAll(/[.*[\]^$\\,&]/g, '\\$&');

async function isRemoteDirectory(
  session: Session,
  pod: Awaited<ReturnType<typeof podOf>>,
  path: string,
): Promise<boolean> {
  try {
    await connectTerminal(session, pod, 'exec', {
      container: containerOf(session, pod),
      command: ['test', '-d', path],
      stdin: false,
      tty: false,
      onStdout: () => {},
    });
    return true;
  } catch {
    // A container without `test` has the file copied under the given name.
    return false;
  }
}

async function download(session: Session, source: Place, path: string): Promise<number> {
  const pod = await podOf(session, source);
  const [directory, name] = split(source.path);
  const queue: Uint8Array[] = [];
  let wake: () => void = () => {};
  let ended = false;
  async function* received(): AsyncGenerator<Uint8Array> {
    for (;;) {
      const next = queue.shift();
      if (next !== undefined) yield next;
      else if (ended) return;
      else
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
    }
  }
  const local = await localTarget(session, path, name);
  // Names with `..` and absolute names in the archive are refused by tar; links are not followed out of the target.
  const unpacked = (async () => {
    for await (const _ of session.context.system.tar(
      [
        '-xf',
        '-',
        '-C',
        local.directory,
        '--no-same-owner',
        '--no-overwrite-dir',
        `--transform=s,^${escaped(name)},${escaped(local.name)},rh`,
      ],
      received(),
    ));
  })();
  const code = await connectTerminal(session, pod, 'exec', {
    container: containerOf(session, pod),
    command: ['tar', 'cf', '-', '-C', directory, '--', name],
    stdin: false,
    tty: false,
    onStdout: (bytes) => {
      queue.push(Buffer.from(bytes));
      wake();
    },
  }).finally(() => {
    ended = true;
    wake();
  });
  await unpacked;
  return code;
}

async function localTarget(
  session: Session,
  path: string,
  name: string,
): Promise<{ readonly directory: string; readonly name: string }> {
  const isDirectory = await session.context.system.filesIn(path).then(
    (files) => files !== undefined,
    () => false,
  );
  if (isDirectory) return { directory: path, name };
  const [directory, own] = split(path);
  return { directory, name: own };
}
