/** `cp` copies files between this host and a container, with `tar` on both sides. Source: k8s.io/kubectl/pkg/cmd/cp. */

import { printable } from '../../../base/text/printable.ts';
import { ClientError } from '../../core/errors.ts';
import type { VerbContext } from '../../port.ts';
import { withSession } from '../../run.ts';
import type { Session } from '../../session.ts';
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

/** Parses an argument of the form `PATH`, `POD:PATH` or `NAMESPACE/POD:PATH`. */
function placeOf(text: string): Place {
  const [, where, path = ''] = /^([^:/.][^:]*):(.*)$/s.exec(text) ?? [];
  if (where === undefined) return { namespace: undefined, pod: undefined, path: text };
  const parts = where.split('/');
  if (parts.length > 2) throw new ClientError(`${text}: must be POD:PATH or NAMESPACE/POD:PATH`);
  return parts.length === 2 ? { namespace: parts[0], pod: parts[1], path } : { namespace: undefined, pod: where, path };
}

const podOf = (session: Session, { namespace, pod = '' }: Place): ReturnType<typeof runningPod> =>
  runningPod(session, pod, namespace);

const split = (path: string): readonly [directory: string, name: string] => {
  const clean = path.replace(/\/+$/, '') || '/';
  const at = clean.lastIndexOf('/');
  return at < 0 ? ['.', clean] : [clean.slice(0, at) || '/', clean.slice(at + 1)];
};

async function upload(session: Session, path: string, target: Place): Promise<number> {
  const { system } = session.context;
  if (!(await system.exists(path))) throw new ClientError(`${path} doesn't exist in local filesystem`);
  const pod = await podOf(session, target);
  const [directory, name] = split(path);
  const isDirectory = target.path.endsWith('/') || (await isRemoteDirectory(session, pod, target.path));
  const [remoteDirectory, remoteName] = isDirectory
    ? [target.path.replace(/\/+$/, '') || '/', name]
    : split(target.path);
  let failure: unknown;
  const archive = noting(
    system.tar([
      '-cf',
      '-',
      '-C',
      directory,
      ...(name === remoteName ? [] : [`--transform=s,^${escaped(name)},${escaped(remoteName)},rh`]),
      '--',
      name,
    ]),
    (error) => {
      failure = error;
    },
  );
  const keep = session.context.flags.bool('no-preserve') ? ['--no-same-permissions', '--no-same-owner'] : [];
  const code = await connectTerminal(session, pod, 'exec', {
    container: containerOf(session, pod),
    command: ['tar', ...keep, '-xmf', '-', '-C', remoteDirectory],
    stdin: true,
    tty: false,
    input: archive,
    onStdout: () => undefined,
  });
  if (failure !== undefined) throw failure;
  return code;
}

/** Passes the chunks on, and reports the error that ends them. The receiver of the chunks drops errors. */
async function* noting(
  chunks: AsyncIterable<Uint8Array>,
  onError: (error: unknown) => void,
): AsyncGenerator<Uint8Array> {
  try {
    yield* chunks;
  } catch (error) {
    onError(error);
    throw error;
  }
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
      onStdout: () => undefined,
    });
    return true;
  } catch {
    // If the container has no `test`, the target is treated as a file name.
    return false;
  }
}

async function download(session: Session, source: Place, path: string): Promise<number> {
  const { flags, io, system } = session.context;
  const pod = await podOf(session, source);
  const [directory, last] = split(source.path);
  const name = last === '' ? '.' : last;
  if (name === '..') throw new ClientError(`${source.path}: must not end with ".."; name the directory itself`);
  const archive = new Handover();
  const stop = new AbortController();
  const shown = `${pod.metadata?.namespace ?? ''} ${pod.metadata?.name ?? ''}`;
  const unpacked = system
    .unpack(archive, {
      member: name,
      target: await localTarget(session, path, name),
      keepMode: !flags.bool('no-preserve'),
      onSkip: (type, entry, linkTo) =>
        io.err(
          `warning: skipping ${printable(`${type}: ${JSON.stringify(entry)} -> ${JSON.stringify(linkTo)}`)} (consider using "kubectl exec -n ${shown} -- tar cf - ${source.path} | tar xf -")\n`,
        ),
    })
    .catch((error: unknown) => {
      archive.abandon();
      stop.abort();
      throw error;
    });
  const received = connectTerminal(session, pod, 'exec', {
    container: containerOf(session, pod),
    command: ['tar', 'cf', '-', '-C', directory, '--', name],
    stdin: false,
    tty: false,
    stop: stop.signal,
    onStdout: (bytes) => archive.push(Buffer.from(bytes)),
  }).finally(() => archive.end());
  const [unpacking, transfer] = await Promise.allSettled([unpacked, received]);
  // If both failed, the error of the remote command is thrown, because it explains why the archive ends too early.
  if (transfer.status === 'rejected' && !stop.signal.aborted) throw transfer.reason;
  if (unpacking.status === 'rejected') throw unpacking.reason;
  if (transfer.status === 'rejected') throw transfer.reason;
  return transfer.value;
}

/** Stream between a writer and a reader. The writer waits until the reader has taken its chunk. */
class Handover implements AsyncIterable<Uint8Array> {
  readonly #chunks: { readonly bytes: Uint8Array; readonly taken: () => void }[] = [];
  #wake: () => void = () => {};
  #hasEnded = false;

  push(bytes: Uint8Array): Promise<void> | undefined {
    if (this.#hasEnded) return undefined;
    return new Promise((taken) => {
      this.#chunks.push({ bytes, taken });
      this.#wake();
    });
  }

  end(): void {
    this.#hasEnded = true;
    this.#wake();
  }

  /** Called when the reader takes no more chunks. */
  abandon(): void {
    this.end();
    for (const { taken } of this.#chunks.splice(0)) taken();
  }

  async *[Symbol.asyncIterator](): AsyncIterator<Uint8Array> {
    for (;;) {
      const next = this.#chunks.shift();
      if (next !== undefined) {
        next.taken();
        yield next.bytes;
      } else if (this.#hasEnded) return;
      else
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
    }
  }
}

async function localTarget(session: Session, path: string, name: string): Promise<string> {
  const isDirectory = await session.context.system.filesIn(path).then(
    (files) => files !== undefined,
    () => false,
  );
  return isDirectory && name !== '.' ? `${path.replace(/\/+$/, '')}/${name}` : path;
}
