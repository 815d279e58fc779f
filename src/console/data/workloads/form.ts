/** Creates objects for an application from a short form: a deployment and, if it has a port, a service and a route. */
import type { KubeObject } from '../../../api/meta/object.ts';
import { isApiError } from '../../../api/meta/status.ts';
import { dns1123LabelErrors, dns1123SubdomainErrors } from '../../../base/names.ts';
import { objectPath } from '../../../client/resource-path.ts';
import type { Api } from '../api/api.ts';
import { DEPLOYMENTS, INGRESSES, ROUTES, SERVICES } from '../api/resources.ts';
import { remove } from './workloads.ts';

/** Label of the objects that the form creates. */
const MANAGED_BY = 'app.kubernetes.io/managed-by';
const CONSOLE = 'hyperedge-console';

export interface ApplicationForm {
  readonly name: string;
  readonly namespace: string;
  readonly image: string;
  readonly replicas: number;
  /** Port of the service; undefined if no service is created. */
  readonly port: number | undefined;
  /** Host name of the route; '' if no route is created, `*` if the cluster chooses the name. */
  readonly host: string;
}

export type FormErrors = Partial<Readonly<Record<keyof ApplicationForm, string>>>;

export const isImageName = (image: string): boolean =>
  /^[\w.-]+(?::\d+)?(?:\/[\w.-]+)*(?::[\w.-]+)?(?:@sha256:[0-9a-f]{64})?$/.test(image);

export function validateForm({ name, image, replicas, port, host }: ApplicationForm): FormErrors {
  const errors: { -readonly [Field in keyof FormErrors]: string } = {};
  if (dns1123LabelErrors(name).length > 0)
    errors.name = 'Use 1 to 63 lower-case letters, digits and hyphens; begin and end with a letter or digit.';
  if (!isImageName(image)) errors.image = 'Use an image such as registry.example/app:1.0.';
  if (!Number.isInteger(replicas) || replicas < 0 || replicas > 1_000) errors.replicas = 'Use a number from 0 to 1000.';
  if (port !== undefined && (!Number.isInteger(port) || port < 1 || port > 65_535))
    errors.port = 'Use a port from 1 to 65535.';
  if (host !== '' && port === undefined) errors.port = 'A route needs the port of the application.';
  if (host !== '' && host !== '*' && dns1123SubdomainErrors(host).length > 0)
    errors.host = 'Use a host name such as app.example.com.';
  return errors;
}

export function manifestsOf(form: ApplicationForm, hasRoutes: boolean): readonly KubeObject[] {
  const { name, namespace, image, replicas, port, host } = form;
  const labels = { app: name, 'app.kubernetes.io/name': name };
  const metadata = { name, namespace, labels: { ...labels, [MANAGED_BY]: CONSOLE } };
  const selector = { app: name };
  const manifests: (KubeObject & { spec: object })[] = [
    {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata,
      spec: {
        replicas,
        selector: { matchLabels: selector },
        template: {
          metadata: { labels },
          spec: {
            containers: [
              {
                name,
                image,
                ...(port === undefined ? {} : { ports: [{ containerPort: port, protocol: 'TCP' }] }),
                resources: { requests: { cpu: '50m', memory: '64Mi' } },
              },
            ],
          },
        },
      },
    },
  ];
  if (port === undefined) return manifests;
  const ports = [{ name: 'http', port, targetPort: port, protocol: 'TCP' }];
  manifests.push({ apiVersion: 'v1', kind: 'Service', metadata, spec: { selector, ports } });
  if (host === '') return manifests;
  const named = host === '*' ? {} : { host };
  manifests.push(
    hasRoutes
      ? {
          apiVersion: 'route.openshift.io/v1',
          kind: 'Route',
          metadata,
          spec: { ...named, to: { kind: 'Service', name }, port: { targetPort: 'http' } },
        }
      : {
          apiVersion: 'networking.k8s.io/v1',
          kind: 'Ingress',
          metadata,
          spec: {
            rules: [
              {
                ...named,
                http: {
                  paths: [{ path: '/', pathType: 'Prefix', backend: { service: { name, port: { number: port } } } }],
                },
              },
            ],
          },
        },
  );
  return manifests;
}

export const isFromForm = ({ metadata }: KubeObject): boolean => metadata?.labels?.[MANAGED_BY] === CONSOLE;

/** Deletes a deployment that the form has created, with its service and its route or ingress. */
export async function removeApplication(api: Api, name: string, namespace: string): Promise<void> {
  for (const type of [ROUTES, INGRESSES, SERVICES]) {
    const found = await api.json<KubeObject>(objectPath(type, name, namespace)).catch((error: unknown) => {
      // A user who may not read a kind cannot have created an object of it.
      if (isApiError(error, 'NotFound') || isApiError(error, 'Forbidden')) return undefined;
      throw error;
    });
    if (found !== undefined && isFromForm(found)) await remove(api, type, name, namespace);
  }
  await remove(api, DEPLOYMENTS, name, namespace);
}
