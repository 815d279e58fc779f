/** Checks of pods, their images and their network. */
import type { PodFacts } from '../port.ts';
import { check, error, orOk, shell, skipped, warning } from './check.ts';

const BACK_OFF = /BackOff|CrashLoop|CreateContainerConfigError|CreateContainerError|RunContainerError/;
const NO_IMAGE = /^(?:ErrImagePull|ImagePullBackOff|ErrImageNeverPull|InvalidImageName)$/;
const FOREIGN =
  /exec format error|no (?:image|manifest) for (?:platform )?linux|does not match the (?:platform|architecture)/i;

const nameOf = ({ namespace, name }: PodFacts): string => `${namespace}/${name}`;
const describe = ({ namespace, name }: PodFacts): string =>
  `kubectl -n ${shell(namespace)} describe pod ${shell(name)}; kubectl -n ${shell(namespace)} logs ${shell(name)} --previous`;

const backOff = check({
  id: 'pods',
  title: 'no pod waits for a restart',
  group: 'cluster',
  explanation: 'No container is in CrashLoopBackOff or cannot be created.',
  needs: ['pods'],
  run: ({ pods }) =>
    orOk(
      pods.flatMap((pod) =>
        pod.waiting
          .filter(({ reason }) => BACK_OFF.test(reason) && !NO_IMAGE.test(reason))
          .map(({ container, reason, message }) =>
            warning(`${nameOf(pod)} (${container}): ${reason}: ${message}`, describe(pod)),
          ),
      ),
      `${pods.length} pods`,
    ),
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
          .filter(({ message }) => FOREIGN.test(message))
          .map(({ image, message }) =>
            warning(
              `${nameOf(pod)}: image ${image} is for another architecture: ${message}`,
              `hyperedge image remove ${shell(image)} && hyperedge image import FILE    # with an image for the node's architecture`,
            ),
          ),
      ),
      `${pods.length} pods`,
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
              `docker save ${shell(image)} -o image.tar && hyperedge image import image.tar    # on node ${shell(pod.node)}`,
            ),
          ),
      ),
      `${pods.length} pods`,
    ),
});

const registries = check({
  id: 'registries',
  title: 'the configured registries answer',
  group: 'cluster',
  explanation: 'Each configured registry and mirror answers /v2/ through the proxy and with the configured authority.',
  needs: ['registries'],
  run: ({ registries: all }) => {
    if (all.length === 0) return [skipped('no registry is configured')];
    return orOk(
      all.flatMap(({ registry, proxy, problem }) =>
        problem === undefined
          ? []
          : [
              warning(
                `${registry}${proxy === undefined ? '' : ` through ${proxy}`}: ${problem}`,
                /certificate|self-signed|issuer/i.test(problem)
                  ? `set configs.${shell(registry)}.tls.ca_file in /etc/origin/registries.yaml`
                  : `curl -v https://${shell(registry)}/v2/    # then correct registries in the bootstrap file`,
              ),
            ],
      ),
      all.map(({ registry }) => registry).join(' '),
    );
  },
});

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
  needs: ['podProbes'],
  run: ({ podProbes: { pod, service: target } }) =>
    orOk(
      target.problem === undefined
        ? []
        : [
            error(
              `from ${pod}: ${target.address}: ${target.problem}`,
              'nft list table ip hyperedge; kubectl get endpoints kubernetes',
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
      `${peers.length} pods`,
    );
  },
});

export const podChecks = [backOff, architecture, missing, registries, podDns, service, podToPod];
