/** Paths through the update graph of a channel. Source: operator-lifecycle-manager pkg/controller/registry/resolver. */
import { compareSemver } from '../../../../../base/versions/semver.ts';
import type { ChannelEntry } from './blobs.ts';
import type { Bundle, CatalogPackage, Channel } from './catalog.ts';
import { parseRange, type Version } from './semver.ts';

export interface InstalledVersion {
  readonly name: string;
  readonly version: Version | undefined;
}

/** Channel with this name; the default channel if the name is empty. */
export function channelNamed(owner: CatalogPackage, name: string): Channel | undefined {
  const wanted = name === '' ? owner.defaultChannel : name;
  return owner.channels.find((each) => each.name === wanted);
}

/**
 * Versions that a new subscription may install, best first: the entries of the channel from its head on, without
 * entries that another entry skips. If `starting` is set, only the version with this name is returned.
 */
export function installable(owner: CatalogPackage, channel: Channel, starting: string): Bundle[] {
  if (starting !== '') {
    const found = channel.entries.some((each) => each.name === starting) ? owner.bundles.get(starting) : undefined;
    return found === undefined ? [] : [found];
  }
  const skipped = new Set(channel.entries.flatMap((each) => each.skips));
  return bundlesOf(
    owner,
    channel.entries.filter((each) => !skipped.has(each.name)),
  );
}

/** Versions that may directly replace the installed one (`replaces`, `skips` or `skipRange`), newest first. */
export function successors(owner: CatalogPackage, channel: Channel, installed: InstalledVersion): Bundle[] {
  const skipped = new Set(channel.entries.flatMap((each) => each.skips));
  return bundlesOf(
    owner,
    channel.entries.filter(
      (entry) =>
        entry.name !== installed.name &&
        !skipped.has(entry.name) &&
        (entry.replaces === installed.name ||
          entry.skips.includes(installed.name) ||
          isInSkipRange(entry, owner.bundles.get(entry.name), installed)),
    ),
  );
}

function isInSkipRange(entry: ChannelEntry, bundle: Bundle | undefined, installed: InstalledVersion): boolean {
  if (entry.skipRange === '' || installed.version === undefined) return false;
  if (parseRange(entry.skipRange)?.includes(installed.version) !== true) return false;
  // A skipRange that includes versions above the entry's own version must not cause a downgrade.
  return bundle?.version === undefined || compareSemver(bundle.version, installed.version) > 0;
}

const bundlesOf = (owner: CatalogPackage, entries: readonly ChannelEntry[]): Bundle[] =>
  entries.map((each) => owner.bundles.get(each.name)).filter((each) => each !== undefined);
