/** Admission of exec, attach, port-forward and proxy. Source: k8s.io/apiserver/pkg/endpoints/handlers/rest.go. */
import type { JsonObject } from '../../api/meta/object.ts';
import type { UserInfo } from '../../api/registry/definition.ts';
import { isTrue, type ResourceRequestInfo } from '../http/request-info.ts';
import { admitBody } from '../pipeline/admission.ts';
import type { ServerContext } from '../rest/context.ts';

const OPTION_KINDS: Readonly<Record<string, string>> = {
  'pods/exec': 'PodExecOptions',
  'pods/attach': 'PodAttachOptions',
  'pods/portforward': 'PodPortForwardOptions',
  'pods/proxy': 'PodProxyOptions',
  'services/proxy': 'ServiceProxyOptions',
  'nodes/proxy': 'NodeProxyOptions',
  'rigs/console': 'PodAttachOptions',
  'rigclaims/console': 'PodAttachOptions',
};
const FLAGS = ['stdin', 'stdout', 'stderr', 'tty'];

/** Admits a connection. Throws an ApiError if it is rejected. Changes of the options by webhooks have no effect. */
export async function admitConnect(
  context: Pick<ServerContext, 'admission' | 'kinds'>,
  info: ResourceRequestInfo,
  user: UserInfo,
  warnings: string[],
): Promise<void> {
  const kind = context.kinds.at(info.group, info.version, info.plural);
  const name = OPTION_KINDS[`${info.plural}/${info.subresource}`];
  if (kind === undefined || name === undefined) return;
  const { namespace, subresource } = info;
  const request = { kind, namespace, name: info.name, subresource, user, warnings };
  await admitBody(
    context.admission,
    request,
    'CONNECT',
    { group: '', version: 'v1', kind: name },
    optionsOf(name, info),
  );
}

function optionsOf(kind: string, { query }: ResourceRequestInfo): JsonObject {
  const options: JsonObject = { kind, apiVersion: 'v1' };
  for (const flag of FLAGS) if (isTrue(query.get(flag))) options[flag] = true;
  const container = query.get('container');
  if (container !== null && container !== '') options['container'] = container;
  const command = query.getAll('command');
  if (command.length > 0) options['command'] = command;
  const ports = query.getAll('ports').map(Number).filter(Number.isInteger);
  if (ports.length > 0) options['ports'] = ports;
  return options;
}
