/** `hyperedge support-bundle`: one archive with the state of this host and, if it answers, of its cluster. */
import { mkdir, mkdtemp, rename, rm, stat } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { counting, type Progress } from '../../base/command-line/progress.ts';
import { CodedError, isDiskFull, messageOf } from '../../base/errors.ts';
import { silentLog } from '../../base/log.ts';
import { timestamp } from '../../base/time/timestamps.ts';
import { PRODUCT_VERSION } from '../../base/versions/version.ts';
import { checkReady } from '../../client/index.ts';
import { readIdentity } from '../../doctor/io/machine/index.ts';
import { masterFiles, nodeFiles } from '../../pki/index.ts';
import { createKnownValues, safePath } from '../../support-bundle/core/index.ts';
import type { BundleReport } from '../../support-bundle/port.ts';
import { canonicalRoot, pathsBelow } from '../config/paths.ts';
import type { Settings } from '../config/settings.ts';
import { createContext } from '../doctor/context.ts';
import { readOnce } from '../doctor/gather.ts';
import { type OpenedClient, openClient } from '../process/api-access.ts';
import { openAssets, selfCommand } from '../process/assets.ts';
import { openHelpers } from '../process/helper-programs.ts';
import { systemClock as clock, systemRandom as random, settlesWithin } from '../process/process.ts';
import { writeArchive } from './archive.ts';
import { type BundleAccess, noApi } from './cluster-sections.ts';
import { collectSections } from './collect.ts';
import { SecretValues, secretsOfCluster, secretsOfHost } from './known-secrets.ts';
import { bundleSections } from './sections.ts';
import { createSpool, redactLine } from './spool.ts';

export interface BundleOptions {
  readonly root?: string | undefined;
  /** Path of the archive. Default: a file in the working directory, with host and time in its name. */
  readonly output?: string | undefined;
  readonly sinceMs: number;
  readonly maxBytes: number;
  readonly signal: AbortSignal;
  readonly progress: Progress;
}

export interface WrittenBundle {
  readonly path: string;
  readonly bytes: number;
  readonly report: BundleReport;
}

const UNPACK_MS = 10_000;
const READY_MS = 6000;
const SECRETS_MS = 30_000;

/**
 * Creates the archive with mode 0600. An existing file is replaced. Throws CodedErrors 'disk-full' and 'bad-output';
 * then no file remains.
 */
export async function createBundle(options: BundleOptions): Promise<WrittenBundle> {
  const { hostName } = await readIdentity('/');
  const nowMs = clock.nowMs();
  const time = timestamp(nowMs);
  const name = safePath(`hyperedge-support-${hostName}-${time.replaceAll(/[:-]/g, '')}`);
  const target = resolve(options.output ?? `${name}.tar.gz`);
  const work = await makeWorkDirectory(target);
  try {
    const files = join(work, 'files');
    await mkdir(files, { mode: 0o700 });
    const report = await collectInto(files, options, { host: hostName, time });
    const archive = join(work, basename(target));
    const complete = await counting(options.progress, 'archive', 'bytes', (onProgress) =>
      writeArchive(report, {
        from: files,
        to: archive,
        name,
        maxBytes: options.maxBytes,
        mtime: new Date(nowMs),
        onProgress,
      }),
    );
    const { size } = await stat(archive);
    await rename(archive, target);
    return { path: target, bytes: size, report: complete };
  } catch (error) {
    if (!isDiskFull(error)) throw error;
    throw new CodedError(
      'disk-full',
      `${target}: no space is left for the bundle; name a file on another disk with --output`,
      { cause: error },
    );
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}

/** Creates a private directory beside the archive's path. A rename then moves the archive to this path. */
async function makeWorkDirectory(target: string): Promise<string> {
  const directory = dirname(target);
  const bad = (why: string, cause?: unknown): CodedError =>
    new CodedError('bad-output', `--output: ${target}: ${why}; name a file in an existing directory`, { cause });
  if ((await stat(target).catch(() => undefined))?.isDirectory() === true) throw bad('is a directory');
  try {
    return await mkdtemp(join(directory, '.support-bundle-'));
  } catch (error) {
    if (isDiskFull(error))
      throw new CodedError(
        'disk-full',
        `${target}: no space is left for the bundle; name a file on another disk with --output`,
        { cause: error },
      );
    throw bad(messageOf(error), error);
  }
}

async function collectInto(
  directory: string,
  { root: given, sinceMs, signal, progress }: BundleOptions,
  { host, time }: { readonly host: string; readonly time: string },
): Promise<BundleReport> {
  await settlesWithin(
    useBundledPrograms().catch(() => undefined),
    UNPACK_MS,
  );
  const self = selfCommand();
  const nowMs = clock.nowMs();
  const context = createContext({
    root: await canonicalRoot(given),
    machine: '/',
    helper: [...self, 'doctor-probe'],
    nowMs,
  });
  const { root, reachable, settings } = context;
  const paths = await settings().then(
    (known) => known.paths,
    async () => pathsBelow(root),
  );
  const opened: OpenedClient[] = [];
  const access = clusterAccess(settings, opened);
  try {
    const secrets = new SecretValues();
    const problems: string[] = [];
    const find = async (what: string, work: Promise<void>): Promise<void> => {
      const failed = work.catch((error: unknown) => void problems.push(`${what}: ${messageOf(error)}`));
      if (!(await settlesWithin(failed, SECRETS_MS)))
        problems.push(`${what}: not complete within ${SECRETS_MS / 1000} s`);
    };
    await find(
      'secrets of files',
      reachable().then(() => secretsOfHost({ root, ...paths }, secrets)),
    );
    await find(
      'secrets of the cluster',
      access.client().then((client) => secretsOfCluster(client, secrets, AbortSignal.timeout(SECRETS_MS))),
    );
    if (secrets.full) problems.push('more secrets exist than were searched');
    const known = createKnownValues(secrets.values);
    const spool = createSpool(directory, known);
    const sections = bundleSections({ root, nowMs, sinceMs, self, access, reachable, paths });
    const reports = await counting(progress, 'collection', 'sections', (onProgress) =>
      collectSections(sections, spool, signal, onProgress),
    );
    const search = {
      id: 'redaction',
      title: 'Search for secrets',
      tookMs: 0,
      entries: [],
      problems: problems.map((each) => redactLine(each, known)),
    };
    return {
      host,
      version: PRODUCT_VERSION,
      time,
      since: timestamp(sinceMs),
      knownSecrets: secrets.values.size,
      sections: problems.length === 0 ? reports : [...reports, search],
    };
  } finally {
    for (const each of opened) await settlesWithin(each.close(), 2000);
  }
}

function clusterAccess(settings: () => Promise<Settings>, opened: OpenedClient[]): BundleAccess {
  const open = readOnce(async () => {
    const { root, roles } = await settings();
    const file = roles.has('master') ? masterFiles(root).adminKubeconfig : nodeFiles(root).kubeconfig;
    try {
      const access = await openClient(file, 'support-bundle/hyperedge', { clock, random, log: silentLog });
      opened.push(access);
      await checkReady(access.client, AbortSignal.timeout(READY_MS));
      return access.client;
    } catch (error) {
      throw noApi(messageOf(error).split('\n')[0] ?? '');
    }
  });
  return {
    client: open,
    nodeName: async () => (await settings()).nodeName,
  };
}

/**
 * Adds the programs in this executable to PATH, after the host's own programs: these are preferred, because unpacking
 * may fail on a full disk.
 */
async function useBundledPrograms(): Promise<void> {
  await openAssets();
  const directory = await openHelpers();
  if (directory !== undefined) process.env['PATH'] = `${process.env['PATH'] ?? '/usr/sbin:/usr/bin'}:${directory}`;
}
