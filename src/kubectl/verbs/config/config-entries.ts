/** `config set-cluster|set-credentials|set|unset|delete-…|rename-context|get-clusters|get-users`. */
import { ClientError } from '../../core/errors.ts';
import type { VerbContext } from '../../port.ts';
import { changeKubeconfig, entriesIn, type NamedEntry, readKubeconfigOf } from './config.ts';

type Fields = Record<string, unknown>;

const KINDS = {
  clusters: {
    inner: 'cluster',
    fields: {
      server: 'text',
      'tls-server-name': 'text',
      'insecure-skip-tls-verify': 'bool',
      'proxy-url': 'text',
      'certificate-authority': 'text',
      'certificate-authority-data': 'bytes',
      'disable-compression': 'bool',
    },
  },
  users: {
    inner: 'user',
    fields: {
      'client-certificate': 'text',
      'client-certificate-data': 'bytes',
      'client-key': 'text',
      'client-key-data': 'bytes',
      token: 'text',
      tokenFile: 'text',
      username: 'text',
      password: 'text',
      as: 'text',
      'as-uid': 'text',
    },
  },
  contexts: { inner: 'context', fields: { cluster: 'text', user: 'text', namespace: 'text' } },
} as const satisfies Record<
  string,
  { readonly inner: string; readonly fields: Readonly<Record<string, 'text' | 'bool' | 'bytes'>> }
>;

type Kind = keyof typeof KINDS;

/** The document with some fields of one entry replaced. A field whose value is undefined is removed. */
function withFields(document: Fields, kind: Kind, name: string, fields: Fields): Fields {
  const { inner } = KINDS[kind];
  const all = entriesIn(document, kind);
  const before = (all.find((each) => each.name === name) as Fields | undefined)?.[inner] as Fields | undefined;
  const after = Object.fromEntries(Object.entries({ ...before, ...fields }).filter(([, value]) => value !== undefined));
  return { ...document, [kind]: [...all.filter((each) => each.name !== name), { name, [inner]: after } as NamedEntry] };
}

function onlyName({ args }: VerbContext): string {
  const [name, ...more] = args;
  if (name === undefined || name === '' || more.length > 0)
    throw new ClientError(`Unexpected args: [${args.join(' ')}]`);
  return name;
}

/** Content of a flag's file in base64 with `--embed-certs`, otherwise the absolute path of the file. */
async function pem({ flags, system }: VerbContext, field: string): Promise<Fields> {
  if (!flags.has(field)) return {};
  const path = flags.text(field);
  if (!flags.bool('embed-certs')) return { [field]: system.absolutePath(path), [`${field}-data`]: undefined };
  const content = Buffer.from(await system.readFile(path));
  return { [field]: undefined, [`${field}-data`]: content.toString('base64') };
}

export async function runSetCluster(context: VerbContext): Promise<number> {
  const { flags, io } = context;
  const name = onlyName(context);
  const insecure = flags.bool('insecure-skip-tls-verify');
  if (insecure && flags.text('certificate-authority') !== '')
    throw new ClientError('you cannot specify a certificate authority and insecure mode at the same time');
  const fields: Fields = {
    ...texts(context, ['server', 'tls-server-name', 'proxy-url']),
    ...(await pem(context, 'certificate-authority')),
  };
  if (flags.has('insecure-skip-tls-verify')) fields['insecure-skip-tls-verify'] = insecure || undefined;
  if (insecure) Object.assign(fields, { 'certificate-authority': undefined, 'certificate-authority-data': undefined });
  if (flags.text('certificate-authority') !== '') fields['insecure-skip-tls-verify'] = undefined;
  await changeKubeconfig(context, (document) => withFields(document, 'clusters', name, fields));
  io.out(`Cluster "${name}" set.\n`);
  return 0;
}

const texts = ({ flags }: VerbContext, names: readonly string[]): Fields =>
  Object.fromEntries(names.filter((name) => flags.has(name)).map((name) => [name, flags.text(name) || undefined]));

export async function runSetCredentials(context: VerbContext): Promise<number> {
  const { flags, io } = context;
  const name = onlyName(context);
  const isBasic = flags.text('username') !== '' || flags.text('password') !== '';
  if (isBasic && flags.text('token') !== '')
    throw new ClientError(
      'you cannot specify more than one authentication method at the same time: --token, --username/--password',
    );
  const fields: Fields = {
    ...texts(context, ['token', 'username', 'password']),
    ...(await pem(context, 'client-certificate')),
    ...(await pem(context, 'client-key')),
  };
  if (isBasic) Object.assign(fields, { token: undefined, tokenFile: undefined });
  if (flags.text('token') !== '')
    Object.assign(fields, { username: undefined, password: undefined, tokenFile: undefined });
  const change = execChange(context);
  await changeKubeconfig(context, (document) => {
    const before = entriesIn(document, 'users').find((each) => each.name === name) as Fields | undefined;
    const exec = change(((before?.['user'] ?? {}) as Fields)['exec'] as Fields | null | undefined);
    return withFields(document, 'users', name, { ...fields, ...(exec === undefined ? {} : { exec }) });
  });
  io.out(`User "${name}" set.\n`);
  return 0;
}

/** Change of a user's exec plug-in according to the flags. Without a command, only an existing plug-in is changed. */
function execChange({ flags }: VerbContext): (before: Fields | null | undefined) => Fields | undefined {
  const mode = flags.text('exec-interactive-mode');
  if (flags.has('exec-interactive-mode') && !['IfAvailable', 'Always', 'Never'].includes(mode))
    throw new ClientError(`invalid interactive mode type, can be only IfAvailable, Never, Always`);
  const [set, removed] = [new Map<string, string>(), new Set<string>()];
  for (const each of flags.all('exec-env')) {
    const at = each.indexOf('=');
    if (at > 0) set.set(each.slice(0, at), each.slice(at + 1));
    else if (each.endsWith('-')) removed.add(each.slice(0, -1));
    else throw new ClientError(`invalid exec-env format: ${each}`);
  }
  return (before) => {
    const hasCommand = flags.has('exec-command');
    if (!hasCommand && (before === undefined || before === null)) return undefined;
    const env = ((before?.['env'] ?? []) as { name: string; value: string }[])
      .filter(({ name }) => !removed.has(name))
      .map(({ name, value }) => ({ name, value: set.get(name) ?? value }));
    const added = [...set].filter(([name]) => !env.some((each) => each.name === name));
    return {
      args: null,
      env: null,
      provideClusterInfo: false,
      ...before,
      ...(hasCommand ? { command: flags.text('exec-command'), args: null } : {}),
      ...(flags.has('exec-api-version') ? { apiVersion: flags.text('exec-api-version') } : {}),
      ...(flags.list('exec-arg').length > 0 ? { args: [...flags.list('exec-arg')] } : {}),
      ...(flags.has('exec-interactive-mode') ? { interactiveMode: mode } : {}),
      ...(flags.has('exec-provide-cluster-info')
        ? { provideClusterInfo: flags.bool('exec-provide-cluster-info') }
        : {}),
      ...(env.length + added.length > 0 ? { env: [...env, ...added.map(([name, value]) => ({ name, value }))] } : {}),
    };
  };
}

/** Splits a path such as `clusters.one.server` into kind, entry and field. The name of an entry may contain dots. */
function propertyOf(path: string): { readonly kind: Kind; readonly name: string; readonly field: string | undefined } {
  const [kind = '', ...rest] = path.split('.');
  if (!Object.hasOwn(KINDS, kind)) throw new ClientError(`unable to parse ${path} after [] at api.Config`);
  const known = Object.keys(KINDS[kind as Kind].fields);
  const last = rest.at(-1) ?? '';
  const hasField = rest.length > 1 && known.includes(last);
  return {
    kind: kind as Kind,
    name: (hasField ? rest.slice(0, -1) : rest).join('.'),
    field: hasField ? last : undefined,
  };
}

export async function runSet(context: VerbContext): Promise<number> {
  const { args, flags, io } = context;
  const [path = '', value, ...more] = args;
  if (value === undefined || more.length > 0) throw new ClientError(`Unexpected args: [${args.join(' ')}]`);
  const edit = (document: Fields): Fields => {
    if (path === 'current-context') return { ...document, 'current-context': value };
    const { kind, name, field } = propertyOf(path);
    const { fields } = KINDS[kind];
    if (field === undefined || name === '')
      throw new ClientError(
        `${path}: is no field; use ${kind}.NAME.FIELD with one of ${Object.keys(fields).join(', ')}`,
      );
    const type = (fields as Readonly<Record<string, string>>)[field];
    if (type === 'bool' && value !== 'true' && value !== 'false')
      throw new ClientError(`strconv.ParseBool: parsing "${value}": invalid syntax`);
    const isRaw = type === 'bytes' && flags.bool('set-raw-bytes');
    if (type === 'bytes' && !isRaw && Buffer.from(value, 'base64').toString('base64') !== value)
      throw new ClientError(`error decoding ${path}: the value is not base64; encode it or use --set-raw-bytes`);
    const stored = type === 'bool' ? value === 'true' : isRaw ? Buffer.from(value).toString('base64') : value;
    return withFields(document, kind, name, { [field]: stored });
  };
  await changeKubeconfig(context, edit);
  io.out(`Property "${path}" set.\n`);
  return 0;
}

export async function runUnset(context: VerbContext): Promise<number> {
  const { args, io } = context;
  const [path = '', ...more] = args;
  if (path === '' || more.length > 0) throw new ClientError(`Unexpected args: [${args.join(' ')}]`);
  await changeKubeconfig(context, (document) => {
    if (path === 'current-context') return { ...document, 'current-context': '' };
    const { kind, name, field } = propertyOf(path);
    if (name === '') return { ...document, [kind]: [] };
    const all = entriesIn(document, kind);
    if (!all.some((each) => each.name === name)) return document;
    return field === undefined
      ? { ...document, [kind]: all.filter((each) => each.name !== name) }
      : withFields(document, kind, name, { [field]: undefined });
  });
  io.out(`Property "${path}" unset.\n`);
  return 0;
}

export const runDelete =
  (kind: Kind) =>
  async (context: VerbContext): Promise<number> => {
    const name = onlyName(context);
    const what = KINDS[kind].inner;
    const path = await changeKubeconfig(context, (document, file) => {
      const all = entriesIn(document, kind);
      if (!all.some((each) => each.name === name))
        throw new ClientError(`cannot delete ${what} ${name}, not in ${file}`);
      return { ...document, [kind]: all.filter((each) => each.name !== name) };
    });
    if (kind === 'contexts' && (await readKubeconfigOf(context)).document['current-context'] === name)
      context.io.err(
        'warning: this removed your active context, use "kubectl config use-context" to select a different one\n',
      );
    context.io.out(`deleted ${what} ${name} from ${path}\n`);
    return 0;
  };

export async function runRenameContext(context: VerbContext): Promise<number> {
  const { args, io } = context;
  const [from = '', to = '', ...more] = args;
  if (from === '' || to === '' || more.length > 0) throw new ClientError(`Unexpected args: [${args.join(' ')}]`);
  await changeKubeconfig(context, (document, file) => {
    const all = entriesIn(document, 'contexts');
    if (!all.some(({ name }) => name === from))
      throw new ClientError(`cannot rename the context "${from}", it's not in ${file}`);
    if (all.some(({ name }) => name === to))
      throw new ClientError(`cannot rename the context "${from}", the context "${to}" already exists in ${file}`);
    const current = document['current-context'] === from ? { 'current-context': to } : {};
    return {
      ...document,
      ...current,
      contexts: all.map((each) => (each.name === from ? { ...each, name: to } : each)),
    };
  });
  io.out(`Context "${from}" renamed to "${to}".\n`);
  return 0;
}

export const runNames =
  (kind: Kind) =>
  async (context: VerbContext): Promise<number> => {
    const names = entriesIn((await readKubeconfigOf(context)).document, kind).map(({ name }) => name);
    context.io.out(
      `NAME\n${names
        .sort()
        .map((name) => `${name}\n`)
        .join('')}`,
    );
    return 0;
  };
