/**
 * A catalog in the form that the resolver uses: packages, the update graph of each channel, and the location of each
 * bundle in the files of the catalog. The content of bundles is not kept in memory. Source: operator-registry
 * alpha/model (validation rules).
 */
import { compareSemver } from '../../../../../base/versions/semver.ts';
import type { BundleBlob, ChannelBlob, ChannelEntry, Constraint, GvkKey, PackageBlob, ReadBlob } from './blobs.ts';
import { parseVersion, type Version } from './semver.ts';

/** Position of a document in the catalog. `file` is an index into the list of files; the other fields are in bytes. */
export interface Location {
  readonly file: number;
  readonly offset: number;
  readonly length: number;
}

export interface Bundle {
  readonly name: string;
  readonly image: string;
  readonly version: Version | undefined;
  readonly versionText: string;
  readonly provides: readonly GvkKey[];
  readonly requires: readonly Constraint[];
  readonly hasObjects: boolean;
  readonly otherProperties: string;
  readonly location: Location;
}

export interface Channel {
  readonly name: string;
  readonly head: string;
  /**
   * First the head and the entries that it replaces step by step, then entries that are only skipped, newest version
   * first.
   */
  readonly entries: readonly ChannelEntry[];
}

export interface CatalogPackage {
  readonly name: string;
  readonly defaultChannel: string;
  readonly channels: readonly Channel[];
  readonly bundles: ReadonlyMap<string, Bundle>;
}

export interface Catalog {
  readonly packages: ReadonlyMap<string, CatalogPackage>;
  /** Messages about documents and packages that are invalid and therefore excluded. */
  readonly problems: readonly string[];
}

interface Draft {
  package?: PackageBlob;
  readonly channels: Map<string, ChannelBlob>;
  readonly bundles: Map<string, Bundle>;
  problem?: string;
}

const MAX_BUNDLES = 50_000;
const MAX_PROBLEMS = 20;

export class CatalogBuilder {
  readonly #drafts = new Map<string, Draft>();
  readonly #problems: string[] = [];
  /** One copy of each string. Many bundles have equal properties, so this saves memory. */
  readonly #interned = new Map<string, string>();
  #bundles = 0;

  /** Adds a parsed document. Throws an Error if the catalog contains too many bundles. */
  add(read: ReadBlob, location: Location): void {
    if (read.problem !== undefined) {
      if (read.package === undefined) this.#note(read.problem);
      else this.#draft(read.package).problem ??= read.problem;
      return;
    }
    const { blob } = read;
    if (blob === undefined) return;
    switch (blob.schema) {
      case 'olm.package': {
        const draft = this.#draft(blob.name);
        if (draft.package !== undefined) draft.problem ??= 'is defined twice';
        draft.package = { ...blob };
        break;
      }
      case 'olm.channel': {
        const draft = this.#draft(blob.package);
        if (draft.channels.has(blob.name)) draft.problem ??= `channel ${blob.name} is defined twice`;
        draft.channels.set(blob.name, blob);
        break;
      }
      default: {
        this.#bundles += 1;
        if (this.#bundles > MAX_BUNDLES) throw new Error(`catalog has more than ${MAX_BUNDLES} bundles`);
        const draft = this.#draft(blob.package);
        if (draft.bundles.has(blob.name)) draft.problem ??= `bundle ${blob.name} is defined twice`;
        draft.bundles.set(blob.name, this.#bundleOf(blob, location));
      }
    }
  }

  finish(): Catalog {
    const packages = new Map<string, CatalogPackage>();
    for (const name of [...this.#drafts.keys()].sort()) {
      const draft = this.#drafts.get(name);
      if (draft === undefined) continue;
      const made = packageOf(name, draft);
      if (typeof made === 'string') this.#note(`package ${name}: ${made}`);
      else packages.set(name, made);
    }
    return { packages, problems: this.#problems };
  }

  #note(problem: string): void {
    if (this.#problems.length < MAX_PROBLEMS) this.#problems.push(problem);
  }

  #draft(name: string): Draft {
    let draft = this.#drafts.get(name);
    if (draft === undefined) {
      draft = { channels: new Map(), bundles: new Map() };
      this.#drafts.set(name, draft);
    }
    return draft;
  }

  #bundleOf(blob: BundleBlob, location: Location): Bundle {
    return {
      name: blob.name,
      image: blob.image,
      version: parseVersion(blob.version),
      versionText: blob.version,
      provides: blob.provides.map((each) => this.#intern(each)),
      requires: blob.requires,
      hasObjects: blob.hasObjects,
      otherProperties: this.#intern(blob.otherProperties),
      location,
    };
  }

  #intern(text: string): string {
    const known = this.#interned.get(text);
    if (known !== undefined) return known;
    this.#interned.set(text, text);
    return text;
  }
}

/** Validates a package. Returns it, or the reason why it is invalid. */
function packageOf(name: string, draft: Draft): CatalogPackage | string {
  if (draft.problem !== undefined) return draft.problem;
  if (draft.package === undefined) return 'has no document of schema olm.package';
  if (draft.channels.size === 0) return 'has no channel';
  const { defaultChannel } = draft.package;
  if (!draft.channels.has(defaultChannel)) return `default channel ${JSON.stringify(defaultChannel)} does not exist`;
  const channels: Channel[] = [];
  for (const blob of [...draft.channels.values()].sort((a, b) => (a.name < b.name ? -1 : 1))) {
    const channel = channelOf(blob, draft.bundles);
    if (typeof channel === 'string') return `channel ${blob.name}: ${channel}`;
    channels.push(channel);
  }
  const used = new Set(channels.flatMap(({ entries }) => entries.map((each) => each.name)));
  const bundles = new Map([...draft.bundles].filter(([each]) => used.has(each)));
  return { name, defaultChannel, channels, bundles };
}

function channelOf({ name, entries }: ChannelBlob, bundles: ReadonlyMap<string, Bundle>): Channel | string {
  const byName = new Map(entries.map((each) => [each.name, each]));
  if (byName.size < entries.length) return 'has duplicate entries';
  const missing = entries.find((each) => !bundles.has(each.name));
  if (missing !== undefined) return `bundle ${missing.name} does not exist`;
  const passed = new Set(entries.flatMap((each) => [each.replaces, ...each.skips]));
  const heads = entries.filter((each) => !passed.has(each.name));
  const [head] = heads;
  if (head === undefined) return 'has no head: replaces is a cycle';
  if (heads.length > 1) return `has several heads: ${heads.map((each) => each.name).join(', ')}`;
  const chain = new Set<ChannelEntry>();
  for (let current: ChannelEntry | undefined = head; current !== undefined; current = byName.get(current.replaces)) {
    if (chain.has(current)) return 'replaces is a cycle';
    chain.add(current);
  }
  const rest = entries.filter((each) => !chain.has(each));
  const newest = (a: ChannelEntry, b: ChannelEntry): number => byVersion(bundles.get(b.name), bundles.get(a.name));
  return { name, head: head.name, entries: [...chain, ...rest.sort(newest)] };
}

/** Order by version, then by name. Bundles without a version come first. */
function byVersion(a: Bundle | undefined, b: Bundle | undefined): number {
  const [own, other] = [a?.version, b?.version];
  const order =
    own === undefined || other === undefined
      ? Number(own !== undefined) - Number(other !== undefined)
      : compareSemver({ ...own, pre: [] }, { ...other, pre: [] });
  return order || ((a?.name ?? '') < (b?.name ?? '') ? -1 : 1);
}
