/** Finds the earlier release to which the cluster can return, and builds the requests for updates. */
import type { ConfigMap, Node } from '../../../api/generated/core/v1.ts';
import { announcementOf, RELEASE_LABEL, RELEASE_NAMESPACE } from '../../../api/releases/announcement.ts';
import { parseManifest, type ReleaseManifest, storeLevelOf } from '../../../api/releases/manifest.ts';
import { compareReleases } from '../../../base/versions/release-version.ts';
import { type AnyObject, listAt, textAt } from '../api/resources.ts';
import { desiredVersion } from './updates.ts';

/** Selects the config maps that announce imported releases. */
export const RELEASES = { namespace: RELEASE_NAMESPACE, labelSelector: RELEASE_LABEL };

export interface RollBack {
  readonly version: string;
  /** Reason why the server would reject the roll-back; undefined if none is known. */
  readonly refusal: string | undefined;
  /** Whether the bundle of the release must be uploaded first. */
  readonly isMissing: boolean;
}

export interface RollBackFacts {
  readonly nodes: readonly Node[];
  /** Announcements of the imported releases. */
  readonly announcements: readonly ConfigMap[];
  /** Level of the store's log; undefined if it is unknown. */
  readonly storeLevel: number | undefined;
}

/** The newest completed release in the history that is older than the desired release; undefined if there is none. */
export function rollBackOf(version: AnyObject, facts: RollBackFacts): RollBack | undefined {
  const desired = desiredVersion(version);
  const earlier = listAt(version, 'status', 'history')
    .filter((each) => textAt(each, 'state') === 'Completed')
    .map((each) => textAt(each, 'version'))
    .find((each) => each !== '' && compareReleases(each, desired) < 0);
  if (earlier === undefined) return undefined;
  const manifest = facts.announcements
    .map((map) => parseManifest(announcementOf(map).text))
    .find((each): each is ReleaseManifest => typeof each !== 'string' && each.version === earlier);
  if (manifest === undefined)
    return { version: earlier, refusal: `Release ${earlier} is not imported.`, isMissing: true };
  return { version: earlier, refusal: refusalOf(manifest, desired, facts), isMissing: false };
}

/** Reason with the server's wording. The server checks again and also verifies the signature of the release. */
function refusalOf(
  manifest: ReleaseManifest,
  desired: string,
  { nodes, storeLevel }: RollBackFacts,
): string | undefined {
  const { version } = manifest;
  const lacking = [...new Set(nodes.map(architectureOf))].filter(
    (each) => each !== '' && !manifest.files.some(({ architecture }) => architecture === each),
  );
  if (lacking.length > 0) return `release ${version} has no executable for ${lacking.join(', ')}`;
  const readable = storeLevelOf(manifest);
  if (storeLevel !== undefined && storeLevel > readable)
    return `release ${version} reads stores up to level ${readable}, and the store has level ${storeLevel}; stay at ${desired} or update to a newer release`;
  return undefined;
}

const architectureOf = ({ status }: Node): string => {
  const architecture = status?.nodeInfo?.architecture ?? '';
  return architecture === 'amd64' ? 'x64' : architecture;
};

/** Merge patch of the ClusterVersion that requests an update. It removes the `force` of an earlier request. */
export const requestUpdate = (version: string, image: string): object => ({
  spec: { desiredUpdate: { version, image, force: null } },
});
/**
 * Merge patch that requests an older release, which the server rejects without `force`. It removes the image of an
 * earlier request.
 */
export const requestRollBack = (version: string): object => ({
  spec: { desiredUpdate: { version, image: null, force: true } },
});
export const stopUpdate = { spec: { desiredUpdate: null } };
