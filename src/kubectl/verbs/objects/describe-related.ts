/** Reads what a page of `describe` shows besides the object. */
import { isApiError } from '../../../api/meta/status.ts';
import { type AnyObject, fieldAt, listAt, textAt } from '../../core/objects.ts';
import { textsAt } from '../../describe/page.ts';
import type { Related } from '../../describe/related-facts.ts';
import type { Session } from '../../session.ts';
import { podSelectorOf, type Target } from '../../targets.ts';

type Reader = (session: Session, object: AnyObject, namespace: string | undefined) => Promise<Partial<Related>>;

const SERVICE_LABEL = 'kubernetes.io/service-name';

/** Objects of a resource. Objects that the user may not read are not shown. */
const listOf = async (
  session: Session,
  resource: string,
  namespace: string | undefined,
  labelSelector = '',
): Promise<AnyObject[]> =>
  session.list((await session.resources()).get(resource), namespace, { labelSelector }).catch(() => []);

/** Selected objects of a workload that it owns. */
const owned =
  (field: 'pods' | 'replicaSets', resource: string): Reader =>
  async (session, object, namespace) => {
    const found = await listOf(session, resource, namespace, podSelectorOf(object));
    const isOwned = (each: AnyObject): boolean =>
      (each.metadata?.ownerReferences ?? []).some(({ uid }) => uid === object.metadata?.uid);
    return { [field]: found.filter(isOwned) };
  };

async function policiesOf(session: Session, object: AnyObject): Promise<Partial<Related>> {
  return {
    quotas: await policies(session, object, 'resourcequotas'),
    limitRanges: await policies(session, object, 'limitranges'),
  };
}

/** Reads by group and kind. Pages of other kinds show only the object and its events. */
const READERS: Readonly<Record<string, Reader>> = {
  '/Namespace': policiesOf,
  '/PersistentVolumeClaim': async (session, object, namespace) => ({
    pods: (await listOf(session, 'pods', namespace)).filter((pod) => usesClaim(pod, object)),
  }),
  '/ReplicationController': owned('pods', 'pods'),
  '/Service': async (session, object, namespace) => ({
    endpointSlices: await listOf(
      session,
      'endpointslices.discovery.k8s.io',
      namespace,
      `${SERVICE_LABEL}=${object.metadata?.name ?? ''}`,
    ),
  }),
  'apps/DaemonSet': owned('pods', 'pods'),
  'apps/Deployment': owned('replicaSets', 'replicasets.apps'),
  'apps/ReplicaSet': owned('pods', 'pods'),
  'apps/StatefulSet': owned('pods', 'pods'),
  'certificates.k8s.io/CertificateSigningRequest': async (session, object) => ({
    request: await session.context.system.parseSigningRequest(
      Buffer.from(textAt(object, 'spec', 'request'), 'base64').toString(),
    ),
  }),
  'networking.k8s.io/Ingress': async (session, object, namespace) => ({
    services: await servicesOf(session, object, namespace),
    endpointSlices: await listOf(session, 'endpointslices.discovery.k8s.io', namespace, SERVICE_LABEL),
  }),
  'project.openshift.io/Project': policiesOf,
  'route.openshift.io/Route': async (session, _, namespace) => ({
    endpointSlices: await listOf(session, 'endpointslices.discovery.k8s.io', namespace, SERVICE_LABEL),
  }),
  'user.openshift.io/Identity': async (session, object) => ({
    accounts: await namedObjects(session, 'users.user.openshift.io', [textAt(object, 'user', 'name')]),
  }),
  'user.openshift.io/User': async (session, object) => ({
    accounts: await namedObjects(session, 'identities.user.openshift.io', textsAt(object, 'identities')),
  }),
};

export async function relatedOf(
  session: Session,
  { object, key, events }: { readonly object: AnyObject; readonly key: string; readonly events: Related['events'] },
  { namespace }: Target,
): Promise<Related> {
  return {
    now: session.context.system.now(),
    events,
    pods: [],
    replicaSets: [],
    endpointSlices: [],
    services: new Map(),
    accounts: new Map(),
    quotas: undefined,
    limitRanges: undefined,
    request: undefined,
    ...(await READERS[key]?.(session, object, namespace)),
  };
}

/** Quotas or limit ranges of a namespace; undefined if the server has none of this resource. */
async function policies(session: Session, object: AnyObject, name: string): Promise<AnyObject[] | undefined> {
  const resource = (await session.resources()).find(name);
  if (resource === undefined) return undefined;
  return session.list(resource, object.metadata?.name).catch((error: unknown) => {
    if (isApiError(error, 'NotFound')) return undefined;
    throw error;
  });
}

function usesClaim(pod: AnyObject, claim: AnyObject): boolean {
  const isMounted = listAt(pod, 'spec', 'volumes').some(
    (volume) => textAt(volume, 'persistentVolumeClaim', 'claimName') === claim.metadata?.name,
  );
  return isMounted || (claim.metadata?.ownerReferences ?? []).some(({ uid }) => uid === pod.metadata?.uid);
}

/** Services of the backends of an ingress. */
function servicesOf(
  session: Session,
  ingress: AnyObject,
  namespace: string | undefined,
): Promise<Map<string, AnyObject | Error>> {
  const paths = listAt(ingress, 'spec', 'rules').flatMap((rule) => listAt(rule, 'http', 'paths'));
  const backends = [fieldAt(ingress, 'spec', 'defaultBackend'), ...paths.map(({ backend }) => backend)];
  const names = backends.map((backend) => textAt(backend, 'service', 'name'));
  return namedObjects(session, 'services', names, namespace);
}

/** Objects by name, with the error of the request for those that cannot be read. Empty names are ignored. */
async function namedObjects(
  session: Session,
  resource: string,
  names: readonly string[],
  namespace?: string,
): Promise<Map<string, AnyObject | Error>> {
  const index = await session.resources();
  const read = async (name: string): Promise<[string, AnyObject | Error]> => [
    name,
    await session.object(index.get(resource), namespace, name).catch((error: Error) => error),
  ];
  return new Map(await Promise.all([...new Set(names)].filter((name) => name !== '').map(read)));
}
