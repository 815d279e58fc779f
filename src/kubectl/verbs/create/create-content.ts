/** Content of config maps and secrets that `create` makes from files, literals and flags. */
import { ClientError } from '../../core/errors.ts';
import type { AnyObject } from '../../core/objects.ts';
import type { VerbContext } from '../../port.ts';

export function nameOf({ args }: VerbContext): string {
  const [name, ...more] = args;
  if (name === undefined || more.length > 0)
    throw new ClientError(`exactly one NAME is required, got ${args.length}`, { usage: true });
  return name;
}

/** Parses `KEY=VALUE` pairs. Throws ClientError with the flag's name for another form. */
export function pairs(values: readonly string[], flag: string): Record<string, string> {
  return Object.fromEntries(
    values.map((each) => {
      const at = each.indexOf('=');
      if (at <= 0) throw new ClientError(`invalid --${flag} ${JSON.stringify(each)}: expected KEY=VALUE`);
      return [each.slice(0, at), each.slice(at + 1)];
    }),
  );
}

const TEXT = new TextDecoder('utf-8', { fatal: true });

/** Keys and values from `--from-literal`, `--from-file` and `--from-env-file`. */
async function contents({ flags, system }: VerbContext): Promise<Map<string, Uint8Array>> {
  const found = new Map<string, Uint8Array>();
  const add = (key: string, bytes: Uint8Array): void => {
    if (!/^[-._a-zA-Z0-9]+$/.test(key) || key === '.' || key === '..')
      throw new ClientError(
        `${JSON.stringify(key)} is not a valid key name: a valid config key must consist of alphanumeric characters, '-', '_' or '.'`,
      );
    if (found.has(key))
      throw new ClientError(`cannot add key ${JSON.stringify(key)}, another key by that name already exists`);
    found.set(key, bytes);
  };
  for (const source of flags.all('from-literal')) {
    const at = source.indexOf('=');
    if (at <= 0) throw new ClientError(`invalid literal source ${source}, expected key=value`);
    add(source.slice(0, at), Buffer.from(source.slice(at + 1)));
  }
  for (const source of flags.all('from-file')) {
    const [, key, path = source] = /^([^=]+)=(.*)$/.exec(source) ?? [];
    const inside = await system.filesIn(path);
    if (inside === undefined) add(key ?? (path.split('/').at(-1) as string), await system.readFile(path));
    else if (key !== undefined) throw new ClientError('cannot give a key name for a directory path');
    else
      for (const name of inside)
        if (/^[-._a-zA-Z0-9]+$/.test(name)) add(name, await system.readFile(`${path.replace(/\/$/, '')}/${name}`));
  }
  for (const path of flags.all('from-env-file'))
    for (const line of Buffer.from(await system.readFile(path))
      .toString('utf8')
      .split('\n')) {
      const text = line.trimStart().replace(/\r$/, '');
      if (text === '' || text.startsWith('#')) continue;
      const at = text.indexOf('=');
      add(
        at < 0 ? text : text.slice(0, at),
        Buffer.from(at < 0 ? (system.environment(text) ?? '') : text.slice(at + 1)),
      );
    }
  return found;
}

export async function configMap(context: VerbContext): Promise<AnyObject> {
  const data: Record<string, string> = {};
  const binaryData: Record<string, string> = {};
  for (const [key, bytes] of await contents(context)) {
    try {
      data[key] = TEXT.decode(bytes);
    } catch {
      // Content that is not UTF-8 is stored as binary data.
      binaryData[key] = Buffer.from(bytes).toString('base64');
    }
  }
  return {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: nameOf(context) },
    ...(Object.keys(data).length === 0 ? {} : { data }),
    ...(Object.keys(binaryData).length === 0 ? {} : { binaryData }),
    ...(context.flags.bool('immutable') ? { immutable: true } : {}),
  };
}

const encoded = (entries: Iterable<readonly [string, Uint8Array]>): Record<string, string> =>
  Object.fromEntries([...entries].map(([key, bytes]) => [key, Buffer.from(bytes).toString('base64')]));

export async function secretGeneric(context: VerbContext): Promise<AnyObject> {
  const data = encoded(await contents(context));
  const type = context.flags.text('type');
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: nameOf(context) },
    ...(Object.keys(data).length === 0 ? {} : { data }),
    ...(type === '' ? {} : { type }),
  };
}

export async function secretTls(context: VerbContext): Promise<AnyObject> {
  const { flags, system } = context;
  if (flags.text('cert') === '' || flags.text('key') === '') throw new ClientError('key and cert must be specified');
  const [certificate, key] = [await system.readFile(flags.text('cert')), await system.readFile(flags.text('key'))];
  await checkPair(certificate, key);
  const data = encoded([
    ['tls.crt', certificate],
    ['tls.key', key],
  ]);
  return { apiVersion: 'v1', kind: 'Secret', metadata: { name: nameOf(context) }, data, type: 'kubernetes.io/tls' };
}

/** Throws ClientError with Go's message if a certificate and a key do not match. */
async function checkPair(certificate: Uint8Array, key: Uint8Array): Promise<void> {
  const { X509Certificate, createPrivateKey } = await import('node:crypto');
  const [first, second] = [certificate, key].map((bytes) => Buffer.from(bytes).toString('utf8'));
  if (!/-----BEGIN CERTIFICATE-----/.test(first ?? ''))
    throw new ClientError('tls: failed to find any PEM data in certificate input');
  if (!/-----BEGIN [A-Z ]*PRIVATE KEY-----/.test(second ?? ''))
    throw new ClientError(
      /-----BEGIN CERTIFICATE-----/.test(second ?? '')
        ? 'tls: found a certificate rather than a key in the PEM for the private key'
        : 'tls: failed to find any PEM data in key input',
    );
  let isPair: boolean;
  try {
    isPair = new X509Certificate(certificate).checkPrivateKey(createPrivateKey(Buffer.from(key)));
  } catch (error) {
    throw new ClientError(
      `tls: failed to parse the certificate or key: ${error instanceof Error ? error.message : error}`,
    );
  }
  if (!isPair) throw new ClientError('tls: private key does not match public key');
}

export function secretDockerRegistry(context: VerbContext): AnyObject {
  const { flags } = context;
  const [username, password, email, server] = [
    'docker-username',
    'docker-password',
    'docker-email',
    'docker-server',
  ].map((name) => flags.text(name));
  if (username === '' || password === '')
    throw new ClientError(
      'either --from-file or the combination of --docker-username, --docker-password and --docker-server is required',
    );
  const auth = Buffer.from(`${username}:${password}`).toString('base64');
  const auths = {
    [server || 'https://index.docker.io/v1/']: { username, password, ...(email === '' ? {} : { email }), auth },
  };
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: nameOf(context) },
    data: encoded([['.dockerconfigjson', Buffer.from(JSON.stringify({ auths }))]]),
    type: 'kubernetes.io/dockerconfigjson',
  };
}
