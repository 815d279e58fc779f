/**
 * An operator based on @kubernetes/client-node: leader election by a Lease, an informer and a reconcile loop. A Backup
 * gets a finalizer, a config map that represents an external resource, and a status. The external resource is deleted
 * before the Backup.
 */
import {
  CoordinationV1Api,
  CoreV1Api,
  CustomObjectsApi,
  KubeConfig,
  ListWatch,
  V1MicroTime,
  Watch,
} from '@kubernetes/client-node';

const [kubeconfig = '', identity = ''] = process.argv.slice(2);
const namespace = 'default';
const LEASE = 'backup-operator';
const LEASE_SECONDS = 3;
const RETRY_MS = 500;
const FINALIZER = 'lab.test/cleanup';
const where = { group: 'lab.test', version: 'v2', namespace, plural: 'backups' };

interface Backup {
  apiVersion: string;
  kind: string;
  metadata: { name: string; uid: string; generation: number; finalizers?: string[]; deletionTimestamp?: Date };
  spec: { host: string; path: string; keep: number };
  status?: { phase?: string; observedGeneration?: number; by?: string };
}

const config = new KubeConfig();
config.loadFromFile(kubeconfig);
console.log('configured');
const core = config.makeApiClient(CoreV1Api);
const custom = config.makeApiClient(CustomObjectsApi);
const coordination = config.makeApiClient(CoordinationV1Api);
const hasCode = (error: unknown, ...codes: number[]): boolean => codes.includes((error as { code?: number }).code ?? 0);

/** Acquires or renews the lease. Returns true if it is held. */
async function elect(): Promise<boolean> {
  const now = new V1MicroTime(new Date().toISOString());
  const spec = { holderIdentity: identity, leaseDurationSeconds: LEASE_SECONDS, renewTime: now };
  try {
    const lease = await coordination.readNamespacedLease({ name: LEASE, namespace });
    const { holderIdentity, renewTime, leaseTransitions = 0, acquireTime = now } = lease.spec ?? {};
    const mine = holderIdentity === identity;
    // The client returns times with microseconds as strings.
    const silentMs = Date.now() - Date.parse(String(renewTime));
    if (!mine && silentMs < LEASE_SECONDS * 1000) return false;
    lease.spec = {
      ...spec,
      acquireTime: mine ? new V1MicroTime(String(acquireTime)) : now,
      leaseTransitions: leaseTransitions + (mine ? 0 : 1),
    };
    await coordination.replaceNamespacedLease({ name: LEASE, namespace, body: lease });
    return true;
  } catch (error) {
    if (!hasCode(error, 404)) throw error;
    const body = { metadata: { name: LEASE }, spec: { ...spec, acquireTime: now, leaseTransitions: 0 } };
    await coordination.createNamespacedLease({ namespace, body });
    return true;
  }
}

async function reconcile(name: string): Promise<void> {
  let backup: Backup;
  try {
    backup = (await custom.getNamespacedCustomObject({ ...where, name })) as Backup;
  } catch (error) {
    if (hasCode(error, 404)) return;
    throw error;
  }
  const { metadata, spec } = backup;
  const finalizers = metadata.finalizers ?? [];
  const made = `made-for-${name}`;
  if (metadata.deletionTimestamp !== undefined) {
    if (!finalizers.includes(FINALIZER)) return;
    await core.deleteNamespacedConfigMap({ name: made, namespace }).catch((error: unknown) => {
      if (!hasCode(error, 404)) throw error;
    });
    metadata.finalizers = finalizers.filter((each) => each !== FINALIZER);
    await custom.replaceNamespacedCustomObject({ ...where, name, body: backup });
    return;
  }
  if (!finalizers.includes(FINALIZER)) {
    metadata.finalizers = [...finalizers, FINALIZER];
    backup = (await custom.replaceNamespacedCustomObject({ ...where, name, body: backup })) as Backup;
  }
  const body = {
    metadata: {
      name: made,
      ownerReferences: [{ apiVersion: backup.apiVersion, kind: backup.kind, name, uid: metadata.uid }],
    },
    data: { source: `${spec.host}${spec.path}`, keep: String(spec.keep) },
  };
  await core.createNamespacedConfigMap({ namespace, body }).catch(async (error: unknown) => {
    if (!hasCode(error, 409)) throw error;
    await core.replaceNamespacedConfigMap({ name: made, namespace, body });
  });
  if (backup.status?.observedGeneration === backup.metadata.generation) return;
  backup.status = { phase: 'Done', observedGeneration: backup.metadata.generation, by: identity };
  await custom.replaceNamespacedCustomObjectStatus({ ...where, name, body: backup });
}

const dirty = new Set<string>();
const informer = new ListWatch<Backup>(
  `/apis/lab.test/v2/namespaces/${namespace}/backups`,
  new Watch(config),
  async () =>
    (await custom.listNamespacedCustomObject(where)) as {
      items: Backup[];
      metadata: object;
      apiVersion: string;
      kind: string;
    },
  false,
);
for (const verb of ['add', 'update', 'delete'] as const)
  informer.on(verb, (backup) => void dirty.add(backup.metadata.name));
const listen = (): void => void informer.start().catch(() => setTimeout(listen, RETRY_MS));
informer.on('error', () => void setTimeout(listen, RETRY_MS));
listen();

for (let elected = 0; ; ) {
  try {
    if (Date.now() - elected > RETRY_MS) elected = (await elect()) ? Date.now() : 0;
    for (const name of elected > 0 ? [...dirty] : []) {
      dirty.delete(name);
      // Retries after a conflict or while the server is unavailable.
      await reconcile(name).catch(() => dirty.add(name));
    }
  } catch {
    elected = 0;
  }
  await new Promise((resolve) => setTimeout(resolve, 50));
}
