/**
 * Parses upstream's egress selector file. Source: apiserver.k8s.io/v1beta1;
 * k8s.io/apiserver/pkg/server/egressselector/config.go.
 */
import { hostOfUrl, portOfUrl } from '../../base/addresses/url-endpoint.ts';
import { CodedError } from '../../base/errors.ts';
import { list, object, oneOf, parseConfig, string } from '../../wire/strict-yaml.ts';

const NAMES = ['controlplane', 'cluster', 'etcd'] as const;
type ProxiedNetwork = Exclude<(typeof NAMES)[number], 'etcd'>;

const connection = object(
  {
    proxyProtocol: oneOf('Direct', 'HTTPConnect', 'GRPC'),
    transport: object({
      tcp: object({
        url: string(),
        tlsConfig: object({ caBundle: string(), clientKey: string(), clientCert: string(), tlsServerName: string() }),
      }),
      uds: object({ udsName: string() }),
    }),
  },
  ['proxyProtocol'],
);
const field = object(
  {
    apiVersion: oneOf('apiserver.k8s.io/v1beta1', 'apiserver.k8s.io/v1alpha1'),
    kind: oneOf('EgressSelectorConfiguration'),
    egressSelections: list(object({ name: string(), connection }, ['name', 'connection'])),
  },
  ['apiVersion', 'kind'],
);
type Connection = ReturnType<typeof connection.parse>;
type Tcp = NonNullable<NonNullable<Connection['transport']>['tcp']>;
type Refuse = (path: string, what: string) => never;

interface ProxyTls {
  readonly certificateFile: string;
  readonly keyFile: string;
  readonly authorityFile?: string;
  readonly serverName?: string;
}

export type EgressAddress =
  | { readonly socket: string }
  | { readonly host: string; readonly port: number; readonly tls?: ProxyTls };

/** Proxies by network. Throws CodedError 'bad-config' with file and field. */
export function parseEgress(text: string, file: string): ReadonlyMap<ProxiedNetwork, EgressAddress> {
  const { egressSelections = [] } = parseConfig(text, file, field);
  const seen = new Set<string>();
  const proxies = new Map<ProxiedNetwork, EgressAddress>();
  for (const [index, selection] of egressSelections.entries()) {
    const refuse: Refuse = (path, what) => {
      throw new CodedError('bad-config', `${file}: egressSelections[${index}]${path}: ${what}`);
    };
    const name = NAMES.find((each) => each === selection.name.toLowerCase());
    if (name === undefined) return refuse('.name', `"${selection.name}" is not one of ${NAMES.join(', ')}`);
    if (seen.has(name)) refuse('.name', `"${name}" is given twice`);
    seen.add(name);
    const address = addressOf(selection.connection, (path, what) => refuse(`.connection${path}`, what));
    if (address === undefined) continue;
    if (name === 'etcd')
      return refuse('.connection.proxyProtocol', 'connections to the store cannot use a proxy; use Direct');
    proxies.set(name, address);
  }
  return proxies;
}

/** Address of the proxy. Undefined for direct connections. */
function addressOf({ proxyProtocol, transport }: Connection, refuse: Refuse): EgressAddress | undefined {
  if (proxyProtocol === 'Direct') {
    if (transport !== undefined) refuse('.transport', 'config must be absent for direct connect');
    return undefined;
  }
  if (proxyProtocol === 'GRPC') refuse('.proxyProtocol', 'gRPC proxies are not supported; use HTTPConnect');
  const { tcp, uds } = transport ?? refuse('.transport', 'transport must be set for HTTPConnect');
  if (tcp !== undefined && uds !== undefined) refuse('.transport.tcp', 'TCP and UDS cannot both be set');
  if (uds !== undefined) {
    if (uds.udsName === undefined || uds.udsName === '')
      return refuse('.transport.uds.udsName', 'must be present for UDS connections');
    return { socket: uds.udsName };
  }
  if (tcp === undefined) return refuse('.transport.tcp', 'One of TCP or UDS must be set');
  return tcpAddress(tcp, (path, what) => refuse(`.transport.tcp${path}`, what));
}

function tcpAddress({ url: text = '', tlsConfig }: Tcp, refuse: Refuse): EgressAddress {
  const secure = text.startsWith('https://');
  if (!(secure || text.startsWith('http://')) || !URL.canParse(text))
    refuse('.url', 'supported connection protocols are http:// and https://');
  const url = new URL(text);
  const place = { host: hostOfUrl(url), port: portOfUrl(url) };
  if (!secure) {
    if (tlsConfig !== undefined) refuse('.tlsConfig', 'config must not be present when using HTTP');
    return place;
  }
  if (tlsConfig === undefined) return refuse('.tlsConfig', 'TLSConfig must be present when using HTTPS');
  const { caBundle = '', clientCert = '', clientKey = '', tlsServerName = '' } = tlsConfig;
  if (clientCert === '') refuse('.tlsConfig.clientCert', 'Using TLS requires clientCert');
  if (clientKey === '') refuse('.tlsConfig.clientKey', 'Using TLS requires clientKey');
  return {
    ...place,
    tls: {
      certificateFile: clientCert,
      keyFile: clientKey,
      ...(caBundle === '' ? {} : { authorityFile: caBundle }),
      ...(tlsServerName === '' ? {} : { serverName: tlsServerName }),
    },
  };
}
