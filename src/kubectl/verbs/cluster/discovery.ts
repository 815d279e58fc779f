/** Verbs `api-resources`, `api-versions`, `cluster-info` and `version`. */

import { printable } from '../../../base/text/printable.ts';
import { jsonDocument } from '../../core/encode.ts';
import { ClientError } from '../../core/errors.ts';
import { type AnyObject, fieldAt, listAt, textAt } from '../../core/objects.ts';
import { apiVersionOf, groupResource, pathOf, preferred } from '../../core/resources.ts';
import { layout } from '../../core/table.ts';
import { yamlText } from '../../core/yaml-writer.ts';
import type { VerbContext } from '../../port.ts';
import { withSession } from '../../run.ts';

/** Version of kubectl that this client emulates. */
export const CLIENT_VERSION = 'v1.36.0';

export const runResources = (context: VerbContext): Promise<number> =>
  withSession(context, async (session) => {
    const { flags, io } = context;
    const format = flags.text('output');
    if (!['', 'wide', 'name'].includes(format)) throw new ClientError(`--output ${format} is not available`);
    const group = flags.has('api-group') ? flags.text('api-group') : undefined;
    const verbs = flags.list('verbs');
    const categories = flags.list('categories');
    const namespaced = flags.has('namespaced') ? flags.bool('namespaced') : undefined;
    const found = preferred((await session.refreshed()).all).filter(
      (each) =>
        each.verbs.length > 0 &&
        (group === undefined || each.group === group) &&
        (namespaced === undefined || each.namespaced === namespaced) &&
        verbs.every((verb) => each.verbs.includes(verb)) &&
        categories.every((category) => each.categories.includes(category)),
    );
    const by = flags.text('sort-by');
    const key = (each: (typeof found)[number]): string =>
      by === 'kind' ? each.kind : by === 'name' ? each.name : `${each.group}\0${each.name}`;
    found.sort((left, right) => (key(left) < key(right) ? -1 : key(left) > key(right) ? 1 : 0));
    if (format === 'name') {
      io.out(found.map((each) => `${groupResource(each)}\n`).join(''));
      return 0;
    }
    const wide = format === 'wide';
    const rows = found.map((each) => [
      each.name,
      each.shortNames.join(','),
      apiVersionOf(each),
      String(each.namespaced),
      each.kind,
      ...(wide ? [[...each.verbs].sort().join(','), each.categories.join(',')] : []),
    ]);
    const header = ['NAME', 'SHORTNAMES', 'APIVERSION', 'NAMESPACED', 'KIND', ...(wide ? ['VERBS', 'CATEGORIES'] : [])];
    io.out(layout([...(flags.bool('no-headers') ? [] : [header]), ...rows]));
    return 0;
  });

export const runVersions = (context: VerbContext): Promise<number> =>
  withSession(context, async (session) => {
    const versions = new Set((await session.refreshed()).all.map(apiVersionOf));
    context.io.out(
      [...versions]
        .sort()
        .map((each) => `${each}\n`)
        .join(''),
    );
    return 0;
  });

export const runClusterInfo = (context: VerbContext): Promise<number> =>
  withSession(context, async (session) => {
    const { io } = context;
    io.out(`Kubernetes control plane is running at ${session.connection.server}\n`);
    const { server, namespace: own, namespaceGiven } = session.connection;
    const namespace = namespaceGiven ? own : 'kube-system';
    const services = await session.get(pathOf(await session.resource('services'), namespace), {
      labelSelector: 'kubernetes.io/cluster-service=true',
    });
    for (const each of services.items ?? []) {
      const title = each.metadata?.labels?.['kubernetes.io/name'] || (each.metadata?.name ?? '');
      io.out(`${printable(title)} is running at ${printable(serviceLink(server, each))}\n`);
    }
    io.out("\nTo further debug and diagnose cluster problems, use 'kubectl cluster-info dump'.\n");
    return 0;
  });

/** URL of a load balancer if there is one, otherwise the proxy path of the service at the API server. */
function serviceLink(server: string, service: AnyObject): string {
  const { name = '', namespace = '' } = service.metadata ?? {};
  const ports = listAt(service, 'spec', 'ports');
  const [ingress] = listAt(service, 'status', 'loadBalancer', 'ingress');
  if (ingress !== undefined) {
    const host = textAt(ingress, 'ip') || textAt(ingress, 'hostname');
    return ports.map((port) => `http://${host}:${fieldAt(port, 'port')} `).join('');
  }
  const [port] = ports;
  const portName = textAt(port, 'name');
  const isSecure = portName === 'https' || fieldAt(port, 'port') === 443;
  const target = isSecure ? `https:${name}:${portName}` : portName === '' ? name : `${name}:${portName}`;
  return `${server}/api/v1/namespaces/${namespace}/services/${target}/proxy`;
}

interface VersionInfo {
  readonly major?: string;
  readonly minor?: string;
  readonly gitVersion?: string;
}

export async function runVersion(context: VerbContext): Promise<number> {
  const { flags, io } = context;
  const clientVersion: VersionInfo = { gitVersion: CLIENT_VERSION, major: '1', minor: '36' };
  const serverVersion = flags.bool('client')
    ? undefined
    : await withSession(context, (session) => session.get<VersionInfo>('/version'));
  const document = { clientVersion, ...(serverVersion === undefined ? {} : { serverVersion }) };
  switch (flags.text('output')) {
    case 'json':
      io.out(jsonDocument(document).replaceAll(/^( +)/gm, (spaces) => spaces.slice(spaces.length / 2)));
      return 0;
    case 'yaml':
      io.out(yamlText(document));
      return 0;
    case '':
      io.out(
        `Client Version: ${CLIENT_VERSION}\n${serverVersion === undefined ? '' : `Server Version: ${textAt(serverVersion, 'gitVersion')}\n`}`,
      );
      return 0;
    default:
      throw new ClientError("--output must be 'yaml' or 'json'");
  }
}
