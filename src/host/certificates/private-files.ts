/** Checks at start that no other user of the machine has access to the host's private files. */
import { readdir, readFile, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { CodedError } from '../../base/errors.ts';
import { directoryProblem, secretFileProblem } from '../../base/files/secret-file.ts';
import { etcdFiles, masterFiles, nodeFiles } from '../../pki/index.ts';
import type { Settings } from '../config/settings.ts';

const MAX_NAMED = 10;

/** Names of keys and kubeconfigs. Files that an administrator has added are checked too. */
const PRIVATE = /\.(?:key|kubeconfig)$/;
/** The kubelet's certificates. Each file contains a certificate and its key. */
const PAIR = /\.pem$/;

/**
 * Throws CodedError 'bad-config' if other users have access. The message lists each file with the command that fixes
 * it.
 */
export async function checkPrivateFiles({ root, paths }: Pick<Settings, 'root' | 'paths'>): Promise<void> {
  const etcd = etcdFiles(root);
  const node = nodeFiles(root);
  const below = async (directory: string, name: RegExp): Promise<string[]> =>
    (await readdir(directory).catch(() => [])).filter((each) => name.test(each)).map((each) => join(directory, each));
  const files = [
    ...(await below(masterFiles(root).directory, PRIVATE)),
    ...(await below(etcd.directory, PRIVATE)),
    ...(await below(dirname(etcd.signer.key), PRIVATE)),
    ...(await below(node.directory, PRIVATE)),
    ...(await below(node.certificates, PAIR)),
    paths.encryptionConfig,
    paths.gossipKeyring,
  ];
  const own = process.geteuid?.() ?? 0;
  const problems: string[] = [];
  const directories = [
    ...[paths.etcdData, paths.snapshots, paths.lastKnown].map((path) => ({ path, others: 0o077 as const })),
    ...[masterFiles(root).directory, etcd.directory, node.directory].map((path) => ({ path, others: 0o022 as const })),
  ];
  for (const { path, others } of directories) {
    const found = await stat(path).catch(() => undefined);
    const problem = found === undefined ? undefined : directoryProblem(path, found, own, others);
    if (problem !== undefined) problems.push(problem);
  }
  for (const path of files) {
    const found = await stat(path).catch(() => undefined);
    const problem = found === undefined ? undefined : secretFileProblem(path, found, own);
    if (problem !== undefined && !(await isPublicKey(path))) problems.push(problem);
  }
  if (problems.length === 0) return;
  const more = problems.length > MAX_NAMED ? ` (and ${problems.length - MAX_NAMED} more)` : '';
  throw new CodedError('bad-config', `${problems.slice(0, MAX_NAMED).join('\n')}${more}`);
}

/**
 * Whether a `.key` file contains only a public key, such as OKD's `serviceaccounts.public.key`. Public keys may be
 * readable by all users.
 */
async function isPublicKey(path: string): Promise<boolean> {
  const text = await readFile(path, 'latin1').catch(() => '');
  return text.includes('-----BEGIN PUBLIC KEY-----') && !text.includes('PRIVATE KEY');
}
