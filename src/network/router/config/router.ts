/** `router` of the bootstrap file: the proxy for routes and ingresses on this host. */
import { CodedError, messageOf } from '../../../base/errors.ts';
import { type LabelSelector, parseLabelSelector } from '../../../base/selector.ts';
import { boolean, checkedString, integer, object, type Parsed, string } from '../../../wire/strict-yaml.ts';

const HTTP_PORT = 80;
const HTTPS_PORT = 443;
const STATS_PORT = 1936;

const selector = () =>
  checkedString((text) => {
    try {
      parseLabelSelector(text);
      return undefined;
    } catch (error) {
      return error instanceof CodedError ? messageOf(error) : 'give a label selector such as tier=edge';
    }
  });

const absolutePath = () => string({ pattern: /^\//, fix: 'give an absolute path' });

export const routerField = () =>
  object({
    enabled: boolean(),
    httpPort: integer(1, 65_535),
    httpsPort: integer(1, 65_535),
    statsPort: integer(0, 65_535),
    proxyProtocol: boolean(),
    accessLog: boolean(),
    routeSelector: selector(),
    namespaceSelector: selector(),
    defaultCertificate: object({ certFile: absolutePath(), keyFile: absolutePath() }, ['certFile', 'keyFile']),
  });

type RouterFile = Parsed<{ router: ReturnType<typeof routerField> }, 'router'>['router'];

export interface RouterSettings {
  readonly enabled: boolean;
  readonly httpPort: number;
  readonly httpsPort: number;
  /** Port of `/metrics` on loopback; 0 disables it. */
  readonly statsPort: number;
  /** Whether every connection must start with a PROXY header, which a load balancer in front of the router adds. */
  readonly proxyProtocol: boolean;
  readonly accessLog: boolean;
  readonly routeSelector: LabelSelector | undefined;
  readonly namespaceSelector: LabelSelector | undefined;
  /** Certificate and key that replace the cluster's default certificate. */
  readonly defaultCertificate?: { readonly certFile: string; readonly keyFile: string };
}

const selectorOf = (text: string | undefined): LabelSelector | undefined =>
  text === undefined ? undefined : parseLabelSelector(text);

export const routerOf = (file: RouterFile | undefined): RouterSettings => ({
  enabled: file?.enabled ?? true,
  httpPort: file?.httpPort ?? HTTP_PORT,
  httpsPort: file?.httpsPort ?? HTTPS_PORT,
  statsPort: file?.statsPort ?? STATS_PORT,
  proxyProtocol: file?.proxyProtocol ?? false,
  accessLog: file?.accessLog ?? false,
  routeSelector: selectorOf(file?.routeSelector),
  namespaceSelector: selectorOf(file?.namespaceSelector),
  ...(file?.defaultCertificate === undefined ? {} : { defaultCertificate: file.defaultCertificate }),
});

/** Fields that `hyperedge config show` prints. */
export const effectiveRouter = ({ enabled, httpPort, httpsPort, statsPort }: RouterSettings): [string, unknown][] => [
  ['router.enabled', enabled],
  ['router.httpPort', httpPort],
  ['router.httpsPort', httpsPort],
  ['router.statsPort', statsPort],
];
