/** Objects that `run` and `expose` make from flags. Source: k8s.io/kubectl/pkg/cmd/run, pkg/cmd/expose. */
import { ClientError } from '../../core/errors.ts';
import { type AnyObject, listAt, mapAt } from '../../core/objects.ts';
import type { VerbContext } from '../../port.ts';
import { pairs } from './create-content.ts';
import { command, images, nameArgument } from './generators.ts';

/** Pod that the flags of `run` describe. */
export function podFromFlags(context: VerbContext): AnyObject {
  const { flags } = context;
  const name = nameArgument(context);
  const [image = ''] = images(context);
  const words = command(context);
  const port = flags.int('port');
  const labels = flags.text('labels') === '' ? { run: name } : pairs(flags.list('labels'), 'labels');
  const container = {
    image,
    name,
    resources: {},
    ...(words.length === 0 ? {} : flags.bool('command') ? { command: [...words] } : { args: [...words] }),
    ...(flags.all('env').length === 0
      ? {}
      : { env: Object.entries(pairs(flags.all('env'), 'env')).map(([key, value]) => ({ name: key, value })) }),
    ...(flags.text('image-pull-policy') === '' ? {} : { imagePullPolicy: flags.text('image-pull-policy') }),
    ...(port > 0 ? { ports: [{ containerPort: port }] } : {}),
    ...(flags.bool('stdin') ? { stdin: true, stdinOnce: !flags.bool('leave-stdin-open') || undefined } : {}),
    ...(flags.bool('tty') ? { tty: true } : {}),
    ...(flags.bool('privileged') ? { securityContext: { privileged: true } } : {}),
  };
  const annotations = pairs(flags.all('annotations'), 'annotations');
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, labels, ...(Object.keys(annotations).length === 0 ? {} : { annotations }) },
    spec: { containers: [container], dnsPolicy: 'ClusterFirst', restartPolicy: flags.text('restart') || 'Always' },
    status: {},
  };
}

/** Service that `expose` creates for a workload, pod or service. Throws ClientError with the name of a missing flag. */
export function serviceFor(context: VerbContext, object: AnyObject): AnyObject {
  const { flags } = context;
  const name = flags.text('name') || (object.metadata?.name ?? '');
  const fromObject =
    object.kind === 'Pod'
      ? mapAt(object, 'metadata', 'labels')
      : object.kind === 'Service'
        ? mapAt(object, 'spec', 'selector')
        : mapAt(object, 'spec', 'selector', 'matchLabels');
  const selector = flags.text('selector') === '' ? fromObject : pairs(flags.list('selector'), 'selector');
  if (Object.keys(selector).length === 0)
    throw new ClientError(
      `couldn't retrieve selectors via --selector flag or introspection: the ${object.kind?.toLowerCase() ?? ''} has no labels and cannot be exposed`,
    );
  const containers = listAt(object, 'spec', ...(object.kind === 'Pod' ? [] : ['template', 'spec']), 'containers');
  const found =
    object.kind === 'Service'
      ? listAt(object, 'spec', 'ports').map((port) => ({
          port: port['port'] as number,
          protocol: String(port['protocol'] ?? 'TCP'),
        }))
      : containers.flatMap((container) =>
          listAt(container, 'ports').map((port) => ({
            port: port['containerPort'] as number,
            protocol: String(port['protocol'] ?? 'TCP'),
          })),
        );
  const given = flags.list('port').map((port) => ({
    port: Number(port),
    protocol: flags.text('protocol') || (found.find((each) => each.port === Number(port))?.protocol ?? 'TCP'),
  }));
  const ports = given.length > 0 ? given : found;
  if (ports.length === 0)
    throw new ClientError(
      "couldn't find port via --port flag or introspection\nSee 'kubectl expose -h' for help and examples",
    );
  const target = flags.text('target-port');
  const targetPort = (port: number): number | string =>
    target === '' ? port : /^\d+$/.test(target) ? Number(target) : target;
  const labels =
    flags.text('labels') === '' ? mapAt(object, 'metadata', 'labels') : pairs(flags.list('labels'), 'labels');
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name, ...(Object.keys(labels).length === 0 ? {} : { labels: { ...labels } }) },
    spec: {
      ports: ports.map(({ port, protocol }, index) => ({
        ...(ports.length > 1 ? { name: `port-${index + 1}` } : {}),
        port,
        protocol,
        targetPort: targetPort(port),
      })),
      selector: { ...selector },
      ...(flags.text('type') === '' ? {} : { type: flags.text('type') }),
      ...(flags.text('cluster-ip') === '' ? {} : { clusterIP: flags.text('cluster-ip') }),
      ...(flags.text('external-ip') === '' ? {} : { externalIPs: [flags.text('external-ip')] }),
      ...(flags.text('session-affinity') === '' ? {} : { sessionAffinity: flags.text('session-affinity') }),
    },
    status: { loadBalancer: {} },
  };
}
