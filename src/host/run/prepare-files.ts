/**
 * Creates or updates the certificates, kubeconfigs, configuration files and static pod manifests of this host. They are
 * derived from the settings at every start. No component needs to run.
 */
import { randomBytes } from 'node:crypto';
import { mkdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { firstEncryptionFile } from '../../apiserver/encryption/first-configuration.ts';
import type { Log } from '../../base/log.ts';
import { issueCertificates, ownsStore } from '../certificates/issue-certificates.ts';
import { writeIfMissing } from '../config/files.ts';
import { etcdConfigOf, masterConfigOf } from '../config/generate.ts';
import { writeGenerated } from '../config/generated-file.ts';
import { MASTER_ENV } from '../config/master-env.ts';
import { groupedNodeConfig, sysconfigOf } from '../config/node-group.ts';
import type { Settings } from '../config/settings.ts';
import { writeStaticPods } from '../control/static-pods.ts';
import { ownPorts } from '../network/own-ports.ts';
import { diagnosticsBelow } from '../process/diagnostics.ts';

const ENCRYPTION_KEY_BYTES = 32;

export interface InstallReport {
  /** Certificates and kubeconfigs that were issued or renewed, each with the reason. */
  readonly issued: readonly string[];
  /** Edited configuration files that were kept. */
  readonly kept: readonly string[];
}

/** Creates or updates the files. Throws CodedErrors with the file and the fix. */
export async function installHost(
  settings: Settings,
  options: {
    /** Time by which certificates are issued and renewed. */
    readonly nowMs: number;
    readonly cgroupDriver: string;
    readonly assets: string | undefined;
    readonly log: Log;
  },
): Promise<InstallReport> {
  const { paths, roles } = settings;
  const issued: string[] = [];
  const kept: string[] = [];
  const context = {
    nowMs: options.nowMs,
    lifeMs: settings.certificateLifeMs,
    onIssued: (path: string, why: string): void => {
      issued.push(path);
      if (why !== 'new') options.log.info('certificate renewed', { path, reason: why });
    },
  };
  await makeDirectories(settings);
  await issueCertificates(settings, context);
  const generate = async (path: string, document: unknown): Promise<void> => {
    const outcome = await writeGenerated(path, document);
    if (outcome === 'kept') kept.push(path);
  };
  if (roles.has('master')) {
    if (settings.secretsEncryption !== undefined) {
      const first = firstEncryptionFile(
        settings.secretsEncryption,
        options.nowMs,
        randomBytes(ENCRYPTION_KEY_BYTES).toString('base64'),
      );
      if (await writeIfMissing(paths.encryptionConfig, first, 0o600)) issued.push(paths.encryptionConfig);
    }
    await generate(paths.masterConfig, masterConfigOf(settings));
    await writeIfMissing(paths.masterEnv, MASTER_ENV, 0o644);
  }
  if (ownsStore(settings)) await generate(paths.etcdConfig, etcdConfigOf(settings));
  if (roles.has('node')) {
    await writeIfMissing(paths.nodeSysconfig, sysconfigOf(settings), 0o644);
    await generate(paths.nodeConfig, await groupedNodeConfig(settings, options.cgroupDriver, options.log));
  }
  kept.push(...(await writeStaticPods(settings, options.assets, await ownPorts(settings, options.log))));
  return { issued, kept };
}

async function makeDirectories(settings: Settings): Promise<void> {
  const { paths } = settings;
  const secret = [
    paths.etcdData,
    paths.snapshots,
    paths.run,
    paths.masterLogs,
    diagnosticsBelow(settings.root),
    dirname(paths.agentSocket),
    join(settings.root, 'etc/origin/node/certificates'),
  ];
  const open = [
    dirname(paths.nodeSysconfig),
    paths.staticPods,
    paths.volumes,
    paths.images,
    paths.containers,
    paths.podLogs,
    paths.containerLogs,
  ];
  await Promise.all([
    ...secret.map((path) => mkdir(path, { recursive: true, mode: 0o700 })),
    ...open.map((path) => mkdir(path, { recursive: true, mode: 0o755 })),
  ]);
}
