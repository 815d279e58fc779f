/**
 * What a member tells about itself, as Serf tags (short text to short text), so that `serf members` shows it and any reader may
 * ignore what it does not know. It informs elections and placement; it never decides anything.
 */
export interface MemberMetadata {
  readonly roles: readonly string[];
  /** Where the member's services listen, by service: `{ peer: '10.0.0.1:2380' }`. */
  readonly addresses: ReadonlyMap<string, string>;
  readonly version: string;
  /** Highest store revision or log index applied; absent on members without a store. */
  readonly appliedIndex?: number;
  /** Typical time of one durable write, microseconds. */
  readonly fsyncMicros?: number;
  /** Wall clock minus the ring's median clock, milliseconds. */
  readonly clockOffsetMs?: number;
}

const ADDRESS_PREFIX = 'addr.';
/** Not a comma: Serf prints tags with commas between them. */
const ROLE_SEPARATOR = '+';

export function tagsOf(metadata: MemberMetadata): ReadonlyMap<string, string> {
  const tags = new Map<string, string>();
  // Serf's own name for this tag is singular; tools that filter by role know it.
  if (metadata.roles.length > 0) tags.set('role', metadata.roles.join(ROLE_SEPARATOR));
  if (metadata.version !== '') tags.set('version', metadata.version);
  for (const [service, address] of metadata.addresses) tags.set(ADDRESS_PREFIX + service, address);
  setNumber(tags, 'applied', metadata.appliedIndex);
  setNumber(tags, 'fsync', metadata.fsyncMicros);
  setNumber(tags, 'clock', metadata.clockOffsetMs);
  return tags;
}

/** Reads tags that may be anybody's: what is missing or malformed is left out. */
export function metadataOf(tags: ReadonlyMap<string, string>): MemberMetadata {
  const addresses = new Map<string, string>();
  for (const [key, value] of tags)
    if (key.startsWith(ADDRESS_PREFIX)) addresses.set(key.slice(ADDRESS_PREFIX.length), value);
  const appliedIndex = readNumber(tags.get('applied'), 0);
  const fsyncMicros = readNumber(tags.get('fsync'), 0);
  const clockOffsetMs = readNumber(tags.get('clock'), Number.MIN_SAFE_INTEGER);
  const role = tags.get('role') ?? '';
  return {
    roles: role === '' ? [] : role.split(ROLE_SEPARATOR),
    addresses,
    version: tags.get('version') ?? '',
    ...(appliedIndex === undefined ? {} : { appliedIndex }),
    ...(fsyncMicros === undefined ? {} : { fsyncMicros }),
    ...(clockOffsetMs === undefined ? {} : { clockOffsetMs }),
  };
}

function setNumber(tags: Map<string, string>, key: string, value: number | undefined): void {
  if (value !== undefined && Number.isFinite(value)) tags.set(key, String(Math.round(value)));
}

function readNumber(text: string | undefined, atLeast: number): number | undefined {
  if (text === undefined || !/^-?\d{1,16}$/.test(text)) return undefined;
  const value = Number(text);
  return Number.isSafeInteger(value) && value >= atLeast ? value : undefined;
}
