/**
 * Converts flags of `hyperedge install` to the bootstrap file. The other fields and the comments of an existing file
 * are kept.
 */

import { mkdir, readdir, readFile, rename, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { Document, parseDocument } from 'yaml';
import { CodedError, messageOf } from '../../base/errors.ts';
import { nodeFiles } from '../../pki/index.ts';
import { parseConfig } from '../../wire/strict-yaml.ts';
import { bootstrapField } from '../config/bootstrap.ts';
import { readReferenced } from '../config/files.ts';
import { pathsBelow } from '../config/paths.ts';
import { caHashOf, certificatesOf } from '../join/discovery.ts';

export interface BootstrapFlags {
  /** Path of a bootstrap file that replaces the current one. */
  readonly config: string | undefined;
  readonly roles: readonly string[] | undefined;
  readonly address: string | undefined;
  readonly nodeName: string | undefined;
  readonly hostTools: boolean;
  readonly join: { readonly server: string; readonly token: string; readonly caHash: string } | undefined;
  readonly offer?: { readonly server: string; readonly caHash: string } | undefined;
  readonly handover?: { readonly masters: number } | undefined;
}

/** Taint of a temporary master. It keeps users' pods away, because they would have to move when the host leaves. */
const TEMPORARY_TAINT = 'hyperedge.dev/bootstrap:NoSchedule';

/**
 * Text of the bootstrap file with the fields of the flags; undefined if there is neither a file nor a flag with a
 * field. Throws CodedError 'bad-config'.
 */
export async function bootstrapText(path: string, flags: BootstrapFlags): Promise<string | undefined> {
  const present =
    flags.config === undefined
      ? await readFile(path, 'utf8').catch(() => undefined)
      : await readReferenced(flags.config, '--config');
  if (present !== undefined) parseConfig(present, flags.config ?? path, bootstrapField);
  const fields = fieldsOf(flags);
  if (fields.length === 0) return present;
  checkFlags(fields);
  const document = present === undefined ? new Document({}) : parseDocument(present);
  if (present === undefined) {
    document.set('apiVersion', 'hyperedge.dev/v1');
    document.set('kind', 'Bootstrap');
  }
  let differs = present === undefined;
  for (const [field, value] of fields) {
    if (JSON.stringify(plain(document.getIn(field))) === JSON.stringify(value)) continue;
    document.setIn(field, document.createNode(value));
    differs = true;
  }
  return differs ? document.toString({ lineWidth: 0 }) : present;
}

/**
 * Writes the bootstrap file unless it has the same text. Returns whether it was written. Only its owner may read it,
 * because it may contain a token.
 */
export async function writeBootstrap(path: string, text: string | undefined): Promise<boolean> {
  if (text === undefined || (await readFile(path, 'utf8').catch(() => undefined)) === text) return false;
  try {
    await mkdir(dirname(path), { recursive: true, mode: 0o755 });
    await writeFile(`${path}.new`, text, { mode: 0o600, flush: true });
    await rename(`${path}.new`, path);
  } catch (error) {
    throw new CodedError('unwritable', `cannot write ${path}: ${messageOf(error)}`, { cause: error });
  }
  return true;
}

/** Throws CodedError 'other-cluster' if this host has the identity or data of another cluster. */
export async function checkCluster(
  root: string,
  { join, offer }: Partial<Pick<BootstrapFlags, 'join' | 'offer'>>,
): Promise<void> {
  const target = join ?? offer;
  if (target === undefined) return;
  const refuse = (what: string): never => {
    throw new CodedError(
      'other-cluster',
      `--${join === undefined ? 'offer' : 'join'}: ${what}; run hyperedge reset first, which moves the data to a backup`,
    );
  };
  const ca = await readFile(nodeFiles(root).clientCa, 'utf8').catch(() => undefined);
  if (ca !== undefined) {
    // During a rotation, the bundle also contains the successor or the predecessor of the signing authority.
    const own = certificatesOf(ca).map(caHashOf);
    if (!own.includes(target.caHash)) refuse(`this host belongs to the cluster with CA ${own.join(', ')}`);
    return;
  }
  const { etcdData } = pathsBelow(root);
  const data = await readdir(etcdData).catch(() => []);
  if (data.length > 0) refuse(`${etcdData} has the data of another cluster`);
}

function fieldsOf(flags: BootstrapFlags): [string[], unknown][] {
  const fields: [string[], unknown][] = [];
  if (flags.roles !== undefined) fields.push([['roles'], flags.roles]);
  if (flags.address !== undefined) fields.push([['node', 'ip'], flags.address]);
  if (flags.nodeName !== undefined) fields.push([['node', 'name'], flags.nodeName]);
  if (flags.hostTools) fields.push([['hostTools'], true]);
  if (flags.join !== undefined) fields.push([['join'], flags.join]);
  if (flags.offer !== undefined) fields.push([['offer'], flags.offer]);
  if (flags.handover !== undefined) fields.push([['handover'], flags.handover], [['taints'], [TEMPORARY_TAINT]]);
  return fields;
}

/** Validates the fields that come from flags. Errors name the flag instead of the line in a file. */
function checkFlags(fields: readonly [string[], unknown][]): void {
  const flagOf: Readonly<Record<string, string>> = {
    roles: '--roles',
    'node.ip': '--address',
    'node.name': '--node-name',
    'join.server': '--join',
    'join.token': '--token',
    'join.caHash': '--ca-hash',
    'offer.server': '--offer',
    'offer.caHash': '--ca-hash',
    'handover.masters': '--masters',
  };
  const document = new Document({ apiVersion: 'hyperedge.dev/v1', kind: 'Bootstrap' });
  for (const [field, value] of fields) document.setIn(field, document.createNode(value));
  try {
    parseConfig(document.toString({ lineWidth: 0 }), 'flags', bootstrapField);
  } catch (error) {
    const [, field = '', what = ''] = /^flags:\d+: ([^:[]+)(?:\[\d+\])?: (.*)$/s.exec(messageOf(error)) ?? [];
    throw new CodedError('bad-flag', `${flagOf[field] ?? field}: ${what}`, { cause: error });
  }
}

const plain = (node: unknown): unknown =>
  typeof node === 'object' && node !== null && 'toJSON' in node && typeof node.toJSON === 'function'
    ? node.toJSON()
    : node;

export const bootstrapPath = (root: string): string => join(root, 'etc/origin/bootstrap.yaml');
