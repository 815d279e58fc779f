/** Settings of a host after it has joined its cluster. A host that has not joined yet joins first. */
import { access } from 'node:fs/promises';
import type { Progress } from '../../base/command-line/progress.ts';
import { CodedError, ifMissing } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import { createHostFacts } from '../../kubelet/io/host-facts/index.ts';
import { masterFiles, nodeFiles } from '../../pki/index.ts';
import { checkPrivateFiles } from '../certificates/private-files.ts';
import type { Settings } from '../config/settings.ts';
import { joinCluster, mustJoin } from '../join/join.ts';
import { offerUntilClaimed } from '../join/offer.ts';
import { systemClock as clock } from '../process/process.ts';

export interface JoiningHost {
  readonly settings: Settings;
  readonly log: Log;
  readonly progress: Progress;
  readonly reload: () => Promise<Settings>;
  readonly signal: AbortSignal;
}

/** Joins the cluster if necessary and resolves with the settings. Throws CodedErrors of one line. */
export async function settingsOnceJoined(host: JoiningHost): Promise<Settings> {
  const { log, progress, reload, signal } = host;
  const settings = await settingsOnceClaimed(host);
  if (!(await mustJoin(settings))) {
    await requireIdentity(settings);
    return settings;
  }
  await checkPrivateFiles(settings);
  const { machineId } = await createHostFacts({ root: settings.root, nowMs: () => clock.nowMs() }).info();
  await joinCluster(settings, { log: log.named('join'), note: progress.note, machineId, signal });
  return reload();
}

/**
 * On a host that offers itself, waits until a Machine claims it and resolves with settings that contain the join
 * settings.
 */
async function settingsOnceClaimed({ settings, log, progress, signal }: JoiningHost): Promise<Settings> {
  const { offer, joined, join } = settings;
  if (offer === undefined || joined || join !== undefined) return settings;
  const context = { log: log.named('offer'), note: progress.note, signal };
  return { ...settings, join: await offerUntilClaimed(settings, offer, context) };
}

/** Throws CodedError 'bad-config' if this host neither creates a cluster nor has credentials to join one. */
async function requireIdentity({ roles, root, bootstrapFile }: Settings): Promise<void> {
  const { kubeconfig, bootstrapKubeconfig } = nodeFiles(root);
  if (roles.has('master') || (await exists(masterFiles(root).ca.key)) || (await exists(kubeconfig))) return;
  throw new CodedError(
    'bad-config',
    `${bootstrapFile}: roles: a host without the role master has to join a cluster; set join, or put ${bootstrapKubeconfig} into place`,
  );
}

function exists(path: string): Promise<boolean> {
  return access(path).then(() => true, ifMissing(false));
}
