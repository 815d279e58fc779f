/** etcd's configuration file: YAML with flag names as fields, except for TLS. */
import { CodedError, messageOf } from '../../base/errors.ts';
import { type Cursor, dictionary, type Field, parseConfig } from '../../wire/strict-yaml.ts';
import { type EtcdFlag, FLAGS, type FlagName, flagNamed } from './flags.ts';
import { EtcdUsageProblem, type Given, problemOf, type Value } from './given-values.ts';

/** Flags by field name in `client-transport-security` and `peer-transport-security`. */
const CLIENT_SECURITY: Readonly<Record<string, FlagName>> = {
  'cert-file': 'cert-file',
  'key-file': 'key-file',
  'client-cert-file': 'client-cert-file',
  'client-key-file': 'client-key-file',
  'client-cert-auth': 'client-cert-auth',
  'trusted-ca-file': 'trusted-ca-file',
  'auto-tls': 'auto-tls',
  'crl-file': 'client-crl-file',
  'allowed-hostname': 'client-cert-allowed-hostname',
};
const PEER_SECURITY: Readonly<Record<string, FlagName>> = {
  'cert-file': 'peer-cert-file',
  'key-file': 'peer-key-file',
  'client-cert-file': 'peer-client-cert-file',
  'client-key-file': 'peer-client-key-file',
  'client-cert-auth': 'peer-client-cert-auth',
  'trusted-ca-file': 'peer-trusted-ca-file',
  'auto-tls': 'peer-auto-tls',
  'crl-file': 'peer-crl-file',
  'allowed-cn': 'peer-cert-allowed-cn',
  'allowed-hostname': 'peer-cert-allowed-hostname',
  'skip-client-san-verification': 'experimental-peer-skip-client-san-verification',
};

const cursor: Field<Cursor> = { parse: (at) => at };
const fields = dictionary(cursor);

/** The value as written in the file, before YAML interprets it; undefined if it is empty. */
function textOf(at: Cursor): string | undefined {
  const { node } = at;
  if (node === null) return undefined;
  if ('items' in node) {
    const parts = (node.items as readonly unknown[]).map((item) => {
      const part = item as Cursor['node'];
      return part !== null && 'source' in part && typeof part.source === 'string'
        ? part.source
        : at.fail('must be a value or a list of values', part);
    });
    return parts.join(',');
  }
  if (!('value' in node) || node.value === null) return undefined;
  return 'source' in node && typeof node.source === 'string' ? node.source : String(node.value);
}

/**
 * Reads etcd's configuration file. Fields without a value are ignored. Throws EtcdUsageProblem with file, line and
 * field.
 */
export function readFile(file: string, text: string): Given {
  const given = new Map<FlagName, Value>();
  const take = (at: Cursor, name: FlagName, flag: EtcdFlag): void => {
    // In the file, a duration may be a number of nanoseconds, as Go encodes durations.
    const raw = textOf(at);
    const value = flag.kind === 'duration' && raw !== undefined && /^\d+$/.test(raw) ? `${raw}ns` : raw;
    if (value === undefined) return;
    const problem = problemOf(flag, value);
    if (problem !== undefined) at.fail(problem);
    given.set(name, { text: value, label: `${file}: ${at.path}` });
  };
  const section = (at: Cursor, names: Readonly<Record<string, FlagName>>): void => {
    if (isNothing(at)) return;
    for (const [key, inner] of fields.parse(at)) {
      const name = Object.hasOwn(names, key) ? names[key] : undefined;
      const flag = name === undefined ? undefined : FLAGS.get(name);
      if (name !== undefined && flag !== undefined) take(inner, name, flag);
      else inner.fail(`unknown field; known fields are ${Object.keys(names).join(', ')}`);
    }
  };
  const document: Field<void> = {
    parse: (at) => {
      for (const [key, inner] of fields.parse(at)) {
        if (key === 'client-transport-security') section(inner, CLIENT_SECURITY);
        else if (key === 'peer-transport-security') section(inner, PEER_SECURITY);
        else {
          const known = flagNamed(key);
          if (known === undefined || known.flag.kind === 'ignored' || key === 'version' || key === 'config-file') {
            inner.fail('unknown field; the fields have the names of etcd flags: see etcd --help');
          } else take(inner, known.name, known.flag);
        }
      }
    },
  };
  try {
    parseConfig(text, file, document);
  } catch (error) {
    if (error instanceof CodedError) throw new EtcdUsageProblem(1, messageOf(error));
    throw error;
  }
  return given;
}

function isNothing({ node }: Cursor): boolean {
  return node === null || ('value' in node && node.value === null);
}
