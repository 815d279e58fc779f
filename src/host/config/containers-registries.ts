/**
 * Mirrors and insecure registries for image pulls from `/etc/containers/registries.conf` and `policy.json`, which
 * MachineConfigs of OpenShift write. Unsupported settings are rejected by name. Source: containers-registries.conf(5),
 * version 2; containers-policy.json(5).
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { CodedError } from '../../base/errors.ts';
import type { RegistryOptions } from '../../runtime/images/index.ts';

const REGISTRIES = 'etc/containers/registries.conf';
const POLICY = 'etc/containers/policy.json';
const HOST = /^[a-zA-Z0-9][a-zA-Z0-9.-]*(?::\d{1,5})?$/;
const MAX_BYTES = 1024 * 1024;

type Mirrors = Pick<RegistryOptions, 'mirrors' | 'insecureRegistries'>;

interface Registry {
  prefix: string;
  location: string;
  insecure: boolean;
  readonly mirrors: { location: string; insecure: boolean }[];
}

/** Reads mirrors and insecure registries from the files. Throws CodedError 'bad-config' with file and line. */
export async function containersRegistries(root: string): Promise<Mirrors> {
  await checkPolicy(join(root, POLICY));
  const file = join(root, REGISTRIES);
  const text = await textOf(file);
  const mirrors: Record<string, readonly string[]> = {};
  const insecureRegistries: string[] = [];
  for (const { prefix, location, insecure, mirrors: each } of text === undefined ? [] : registriesIn(text, file)) {
    const name = prefix === '' ? location : prefix;
    const hosts = [...each, ...(location === '' || location === name ? [] : [{ location, insecure }])];
    for (const host of [name, ...hosts.map((mirror) => mirror.location)]) {
      if (HOST.test(host)) continue;
      const fix = 'give a host without a path; paths are rewritten by registries.yaml';
      throw new CodedError('bad-config', `${file}: registry ${JSON.stringify(host)}: is not supported; ${fix}`);
    }
    if (hosts.length > 0) mirrors[name] = hosts.map((mirror) => mirror.location);
    if (insecure) insecureRegistries.push(name);
    for (const mirror of hosts) if (mirror.insecure) insecureRegistries.push(mirror.location);
  }
  return { mirrors, insecureRegistries };
}

/** Parses the part of TOML that the file uses: arrays of tables, strings, booleans and single-line lists of strings. */
function registriesIn(text: string, file: string): readonly Registry[] {
  const registries: Registry[] = [];
  let target: Partial<Registry> | undefined;
  for (const [index, raw] of text.split('\n').entries()) {
    const line = raw.trim();
    const bad = (why: string): CodedError => new CodedError('bad-config', `${file}:${index + 1}: ${why}`);
    if (line === '' || line.startsWith('#')) continue;
    if (line.startsWith('[')) {
      const table = /^\[\[\s*(registry|registry\.mirror)\s*\]\]\s*(?:#.*)?$/.exec(line)?.[1];
      if (table === undefined) throw bad(`${line}: is not supported; give [[registry]] and [[registry.mirror]]`);
      if (table === 'registry') {
        const registry: Registry = { prefix: '', location: '', insecure: false, mirrors: [] };
        registries.push(registry);
        target = registry;
      } else {
        const mirror = { location: '', insecure: false };
        const owner = registries.at(-1);
        if (owner === undefined) throw bad('[[registry.mirror]] before any [[registry]]');
        owner.mirrors.push(mirror);
        target = mirror;
      }
      continue;
    }
    const [, name = '', value = ''] = /^([A-Za-z0-9_-]+)\s*=\s*(.*?)\s*(?:\s#.*)?$/.exec(line) ?? [];
    if (name === '') throw bad('is neither a table nor an assignment');
    // The search list is ignored, because short names always refer to docker.io here.
    if (target === undefined && (name === 'unqualified-search-registries' || name === 'short-name-mode')) continue;
    assign(target, name, value, bad);
  }
  return registries;
}

function assign(
  target: Partial<Registry> | undefined,
  name: string,
  value: string,
  bad: (why: string) => CodedError,
): void {
  const text = /^"([^"\\]*)"$|^'([^']*)'$/.exec(value);
  const string = text?.[1] ?? text?.[2];
  if (target !== undefined && (name === 'location' || (name === 'prefix' && 'mirrors' in target))) {
    if (string === undefined) throw bad(`${name}: must be a string`);
    target[name] = string;
  } else if (target !== undefined && name === 'insecure') {
    if (value !== 'true' && value !== 'false') throw bad('insecure: must be true or false');
    target.insecure = value === 'true';
  } else if (name === 'blocked' && value === 'false') return;
  else if (name === 'mirror-by-digest-only' || name === 'pull-from-mirror') return;
  else throw bad(`${name}: is not supported`);
}

/** Rejects a policy that requires signatures, because they are not verified. */
async function checkPolicy(file: string): Promise<void> {
  const text = await textOf(file);
  if (text === undefined) return;
  let policy: unknown;
  try {
    policy = JSON.parse(text);
  } catch {
    throw new CodedError('bad-config', `${file}: is not JSON`);
  }
  const types = [...JSON.stringify(policy).matchAll(/"type":"([^"]*)"/g)].map(([, type]) => type);
  const wanted = types.find((type) => type !== 'insecureAcceptAnything');
  if (wanted !== undefined)
    throw new CodedError('bad-config', `${file}: type ${wanted}: is not supported; give insecureAcceptAnything`);
}

async function textOf(file: string): Promise<string | undefined> {
  const text = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined;
    throw new CodedError('bad-config', `${file}: ${error.message}`);
  });
  if ((text?.length ?? 0) > MAX_BYTES) throw new CodedError('bad-config', `${file}: has more than ${MAX_BYTES} bytes`);
  return text;
}
