/**
 * Metadata that a member publishes as Serf tags, which are pairs of short texts. `serf members` shows the tags, and
 * readers ignore unknown ones. Elections and placement use metadata only as hints, because a member may publish false
 * values.
 */
export interface MemberMetadata {
  readonly roles: readonly string[];
  /** Addresses by service, such as `{ peer: '10.0.0.1:2380' }`. */
  readonly addresses: ReadonlyMap<string, string>;
  readonly version: string;
  /** Store member on this host. Absent if there has never been one. */
  readonly store?: StoreMetadata;
  /** Highest store revision or log index that the store has applied; absent on members without a store. */
  readonly appliedIndex?: number;
  /** Typical time of one durable write, microseconds. */
  readonly fsyncMicros?: number;
  /** Milliseconds by which the member's clock is ahead of the ring's median clock. */
  readonly clockOffsetMs?: number;
  /** Lifeguard's local health; 0 is healthy. */
  readonly health?: number;
  /** Time of the member's clock at the publication, in milliseconds since the epoch. */
  readonly sentAtMs?: number;
}

export interface StoreMetadata {
  /** ID of the member in the store's cluster: 16 hexadecimal digits. */
  readonly memberId: string;
  /** `down`: the store ended unexpectedly. `stopped`: the store was stopped orderly. */
  readonly state: StoreState;
  /** Store member ID of the leader from which the store currently receives heartbeats. */
  readonly leaderSeen?: string;
}

export type StoreState = 'up' | 'down' | 'stopped';

const ADDRESS_PREFIX = 'addr.';
/** Separator of roles in a tag. It is not a comma, because Serf prints tags separated by commas. */
const ROLE_SEPARATOR = '+';
const STORE_STATES: readonly StoreState[] = ['up', 'down', 'stopped'];

export function tagsOf(metadata: MemberMetadata): ReadonlyMap<string, string> {
  const tags = new Map<string, string>();
  const { roles, addresses, version, store } = metadata;
  // Serf's tag name for roles is singular. Tools filter by it.
  if (roles.length > 0) tags.set('role', roles.join(ROLE_SEPARATOR));
  if (version !== '') tags.set('version', version);
  for (const [service, address] of addresses) tags.set(ADDRESS_PREFIX + service, address);
  if (store !== undefined) {
    tags.set('id', store.memberId);
    tags.set('store', store.state);
    if (store.leaderSeen !== undefined) tags.set('leader', store.leaderSeen);
  }
  setNumber(tags, 'applied', metadata.appliedIndex);
  setNumber(tags, 'fsync', metadata.fsyncMicros);
  setNumber(tags, 'clock', metadata.clockOffsetMs);
  setNumber(tags, 'health', metadata.health);
  setNumber(tags, 'at', metadata.sentAtMs);
  return tags;
}

/** Parses tags from any agent. Missing and malformed tags are omitted. */
export function metadataOf(tags: ReadonlyMap<string, string>): MemberMetadata {
  const addresses = new Map<string, string>();
  for (const [key, value] of tags)
    if (key.startsWith(ADDRESS_PREFIX)) addresses.set(key.slice(ADDRESS_PREFIX.length), value);
  const role = tags.get('role') ?? '';
  const store = storeOf(tags);
  return {
    roles: role === '' ? [] : role.split(ROLE_SEPARATOR),
    addresses,
    version: tags.get('version') ?? '',
    ...(store === undefined ? {} : { store }),
    ...readNumber('appliedIndex', tags.get('applied'), 0),
    ...readNumber('fsyncMicros', tags.get('fsync'), 0),
    ...readNumber('clockOffsetMs', tags.get('clock'), Number.MIN_SAFE_INTEGER),
    ...readNumber('health', tags.get('health'), 0),
    ...readNumber('sentAtMs', tags.get('at'), 0),
  };
}

/** Reports whether the text is a store member ID: 16 lower-case hexadecimal digits. */
export function isStoreMemberId(text: string): boolean {
  return /^[0-9a-f]{16}$/.test(text);
}

function storeOf(tags: ReadonlyMap<string, string>): StoreMetadata | undefined {
  const memberId = tags.get('id');
  const state = STORE_STATES.find((each) => each === tags.get('store'));
  if (memberId === undefined || !isStoreMemberId(memberId) || state === undefined) return undefined;
  const leaderSeen = tags.get('leader');
  return { memberId, state, ...(leaderSeen !== undefined && isStoreMemberId(leaderSeen) ? { leaderSeen } : {}) };
}

function setNumber(tags: Map<string, string>, key: string, value: number | undefined): void {
  if (value !== undefined && Number.isFinite(value)) tags.set(key, String(Math.round(value)));
}

function readNumber<K extends string>(
  name: K,
  text: string | undefined,
  atLeast: number,
): { readonly [key in K]?: number } {
  if (text === undefined || !/^-?\d{1,16}$/.test(text)) return {};
  const value = Number(text);
  return Number.isSafeInteger(value) && value >= atLeast ? ({ [name]: value } as { readonly [key in K]?: number }) : {};
}
