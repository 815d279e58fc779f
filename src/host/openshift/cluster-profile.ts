/**
 * The profile of the cluster on a worker. The worker receives it on joining, stores it in `joined.yaml`, and follows
 * changes in `kube-system/hyperedge-config`. A profile in the host's bootstrap file takes precedence. Masters use only
 * their bootstrap file.
 */
import type { ConfigMap } from '../../api/generated/core/v1.ts';
import { resources } from '../../api/resources.ts';
import { messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { InformerFactory } from '../../client/index.ts';
import { SETTINGS_MAP } from '../../controllers/identity/cluster-info/plan.ts';
import type { Profile } from '../../openshift/oauth/config/login-config.ts';
import { readBootstrap } from '../config/bootstrap-files.ts';
import { profileOf, readJoined, writeJoined } from '../config/joined.ts';
import type { Settings } from '../config/settings.ts';

type ProfiledHost = Pick<Settings, 'roles' | 'paths' | 'bootstrapFile' | 'openshift'>;

export interface ProfileFollower {
  readonly settings: ProfiledHost;
  readonly informers: InformerFactory;
  readonly restartKubelet: () => Promise<void>;
  readonly log: Log;
}

/** The current profile of the host. */
export async function profileOfHost(settings: ProfiledHost): Promise<Profile> {
  if (!(await follows(settings))) return settings.openshift.profile;
  const joined = await readJoined(settings.paths.joined);
  return joined?.cluster.openshiftProfile ?? settings.openshift.profile;
}

/** Updates the stored profile when the cluster's profile changes, until the informers stop. */
export function followProfile({ settings, informers, restartKubelet, log }: ProfileFollower): void {
  if (settings.roles.has('master')) return;
  const { namespace, name } = SETTINGS_MAP;
  const informer = informers.informer(resources.configMaps, { namespace, fieldSelector: `metadata.name=${name}` });
  const apply = async (map: ConfigMap): Promise<void> => {
    const profile = profileOf(map.data ?? {});
    if (profile === undefined || !(await follows(settings))) return;
    const joined = await readJoined(settings.paths.joined);
    if (joined === undefined || joined.cluster.openshiftProfile === profile) return;
    const before = await profileOfHost(settings);
    const { apiVersion: _, kind: __, ...rest } = joined;
    await writeJoined(settings.paths.joined, {
      ...rest,
      roles: [...joined.roles],
      cluster: { ...joined.cluster, openshiftProfile: profile },
    });
    if (profile === before) return;
    log.info('profile of the cluster changed; restarting the kubelet', { profile });
    await restartKubelet();
  };
  let applying: Promise<void> = Promise.resolve();
  const changed = (map: ConfigMap): void => {
    applying = applying
      .then(() => apply(map))
      .catch((error: unknown) => log.warn('profile of the cluster not applied', { error: messageOf(error) }));
  };
  informer.onChange({ added: changed, updated: changed });
  informer.start();
}

async function follows({ roles, bootstrapFile }: ProfiledHost): Promise<boolean> {
  if (roles.has('master')) return false;
  return (await readBootstrap(bootstrapFile))?.file.openshift?.profile === undefined;
}
