/** Checks of pods, their images and their network. */
import { countText } from '../../base/text/count-text.ts';
import type { Finding, HostFacts, PodFacts, RegistryFacts } from '../port.ts';
import { check, error, orOk, restartCommand, shell, skipped, warning, writeDropIn } from './check.ts';

const BACK_OFF = /BackOff|CrashLoop|CreateContainerConfigError|CreateContainerError|RunContainerError/;
const NO_IMAGE = /^(?:ErrImagePull|ImagePullBackOff|ErrImageNeverPull|InvalidImageName)$/;
const FOREIGN =
  /exec format error|no (?:image|manifest) for (?:platform )?linux|does not match the (?:platform|architecture)/i;

const nameOf = ({ namespace, name }: PodFacts): string => `${namespace}/${name}`;

/**
 * Command that shows why the container fails, and then rolls back to the previous revision or stops the pod. A second
 * rollback would return to the failing revision, so `isRolledBack` omits it if another fix contains it.
 */
function stopFailing({ namespace, name, owner }: PodFacts, failure: Failure, isRolledBack: boolean): string {
  const { container, reason } = failure;
  const client = `kubectl -n ${shell(namespace)}`;
  // Only a container that has run has a log. One that could not be created is described by its events.
  const show =
    reason === 'CrashLoopBackOff'
      ? `${client} logs ${shell(name)} -c ${shell(container)} --previous`
      : `${client} describe pod ${shell(name)}`;
  if (owner === undefined) return `${show}; ${client} delete pod ${shell(name)}    # then create it corrected`;
  const workload = shell(`${owner.kind}/${owner.name}`);
  if (owner.hasEarlier && isRolledBack) return `${show}    # the rollback above also replaces this pod`;
  if (owner.hasEarlier) return `${show}; ${client} rollout undo ${workload}`;
  if (owner.kind === 'node') return `${show}; ${client} describe pod ${shell(name)}    # then correct its manifest`;
  const until = '    # until its command, configuration or image is corrected';
  if (SCALABLE.has(owner.kind)) return `${show}; ${client} scale ${workload} --replicas=0${until}`;
  return `${show}; ${client} delete ${workload}    # then create it corrected`;
}

type Failure = PodFacts['waiting'][number];

const SCALABLE: ReadonlySet<string> = new Set(['deployment', 'replicaset', 'statefulset', 'replicationcontroller']);

const backOff = check({
  id: 'pods',
  title: 'no pod waits for a restart',
  group: 'cluster',
  explanation: 'No container is in CrashLoopBackOff or cannot be created.',
  needs: ['pods'],
  run: ({ pods }) => {
    const workloads = new Set<string>();
    const findings: Finding[] = [];
    for (const pod of pods)
      for (const failure of pod.waiting) {
        const { container, reason, message } = failure;
        if (!BACK_OFF.test(reason) || NO_IMAGE.test(reason)) continue;
        const workload = `${pod.namespace}/${pod.owner?.kind}/${pod.owner?.name}`;
        const fix = stopFailing(pod, failure, workloads.has(workload));
        workloads.add(workload);
        findings.push(warning(`${nameOf(pod)} (${container}): ${reason}: ${message}`, fix));
      }
    return orOk(findings, countText(pods.length, 'pod'));
  },
});

const architecture = check({
  id: 'image-architecture',
  title: 'images are for the architecture of their node',
  group: 'cluster',
  explanation: 'No container fails because its image is for another processor architecture.',
  needs: ['pods'],
  run: ({ pods }) =>
    orOk(
      pods.flatMap((pod) =>
        pod.waiting
          .filter(({ message, foreign }) => foreign !== undefined || FOREIGN.test(message))
          .map(({ image, message, foreign }) =>
            warning(
              `${nameOf(pod)}: image ${image} is for ${foreign ?? 'another architecture'}: ${message}`,
              `hyperedge image remove ${shell(image)} && hyperedge image pull ${shell(image)}    # or import an archive for the node's architecture`,
            ),
          ),
      ),
      countText(pods.length, 'pod'),
    ),
});

const missing = check({
  id: 'images',
  title: 'the images of all pods exist or can be pulled',
  group: 'cluster',
  explanation: 'No container waits for an image that is neither imported nor available from a registry.',
  needs: ['pods'],
  run: ({ pods }) =>
    orOk(
      pods.flatMap((pod) =>
        pod.waiting
          .filter(({ reason, message }) => NO_IMAGE.test(reason) && !FOREIGN.test(message))
          .map(({ image, reason, message }) =>
            warning(
              `${nameOf(pod)}: ${reason}: ${image}: ${message}`,
              `docker save ${shell(image)} -o image.tar && hyperedge image import image.tar    # import on node ${shell(pod.node)}; docker may run elsewhere`,
            ),
          ),
      ),
      countText(pods.length, 'pod'),
    ),
});

const registries = check({
  id: 'registries',
  title: 'the configured registries answer',
  group: 'cluster',
  explanation: 'Each configured registry and mirror answers /v2/ through the proxy and with the configured authority.',
  needs: ['registries', 'host'],
  run: ({ registries: all, host }) => {
    if (all.length === 0) return [skipped('no registry is configured')];
    return orOk(
      all.flatMap((each) => {
        const { registry, proxy, problem } = each;
        if (problem === undefined) return [];
        const through = proxy === undefined ? '' : ` through ${proxy}`;
        return [warning(`${registry}${through}: ${problem}`, registryFix(each, problem, host))];
      }),
      all.map(({ registry }) => registry).join(' '),
    );
  },
});

/** Directory from which update-ca-certificates(8) adds CA certificates. */
const LOCAL_AUTHORITIES = '/usr/local/share/ca-certificates/';

function registryFix(
  { registry, proxy, isDirect = false, noProxy = [], authorityFile }: RegistryFacts,
  problem: string,
  host: HostFacts,
): string {
  if (/certificate|self-signed|issuer/i.test(problem)) {
    const name = `${LOCAL_AUTHORITIES}${registry.replaceAll(/[^\w.-]/g, '_')}.crt`;
    if (authorityFile === undefined)
      return `cp CA-FILE ${shell(name)} && update-ca-certificates    # CA-FILE: from the operator of ${shell(registry)}`;
    const copy = authorityFile.startsWith(LOCAL_AUTHORITIES) ? '' : `cp ${shell(authorityFile)} ${shell(name)} && `;
    return `${copy}update-ca-certificates`;
  }
  if (isDirect) {
    const list = [...noProxy, registry].map((each) => JSON.stringify(each)).join(', ');
    return `${writeDropIn(host, '60-no-proxy.yaml', `proxy: {noProxy: [${list}]}`)} && ${restartCommand(host)}`;
  }
  const via = proxy === undefined ? '' : `-x ${shell(proxy)} `;
  return `curl -v ${via}https://${shell(registry)}/v2/    # then correct registries or proxy in the bootstrap file`;
}

const podDns = check({
  id: 'pod-dns',
  title: 'the cluster DNS answers pods',
  group: 'cluster',
  explanation: 'A query for kubernetes.default.svc from the network of a pod is answered.',
  needs: ['podProbes'],
  run: ({ podProbes: { pod, dns } }) =>
    orOk(
      dns.problem === undefined
        ? []
        : [
            error(
              `from ${pod}: ${dns.server}: ${dns.problem}`,
              'hyperedge doctor --check firewall-forward --check host-process',
            ),
          ],
      `${dns.server} answers ${pod}`,
    ),
});

const service = check({
  id: 'services',
  title: 'pods reach services',
  group: 'cluster',
  explanation: 'A connection from the network of a pod to the service kubernetes is accepted.',
  needs: ['podProbes', 'host'],
  run: ({ podProbes: { pod, service: target }, host }) =>
    orOk(
      target.problem === undefined
        ? []
        : [
            error(
              `from ${pod}: ${target.address}: ${target.problem}`,
              `${restartCommand(host)}    # restores links, routes and rules of services`,
            ),
          ],
      `${target.address} answers ${pod}`,
    ),
});

const podToPod = check({
  id: 'pod-to-pod',
  title: 'pods reach pods of all nodes',
  group: 'cluster',
  explanation:
    'A pod of each node answers or refuses a connection from a pod of this host. Network policies may forbid it.',
  needs: ['podProbes'],
  run: ({ podProbes: { pod, peers } }) => {
    if (peers.length === 0) return [skipped('no other pod')];
    return orOk(
      peers.flatMap(({ pod: peer, address, problem }) =>
        problem === undefined
          ? []
          : [
              warning(
                `from ${pod} to ${peer} (${address}): ${problem}`,
                `kubectl get networkpolicies -A; ip route get ${shell(address)}; hyperedge doctor --check mtu --check firewall-forward`,
              ),
            ],
      ),
      countText(peers.length, 'pod'),
    );
  },
});

export const podChecks = [backOff, architecture, missing, registries, podDns, service, podToPod];
