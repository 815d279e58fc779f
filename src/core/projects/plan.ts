/**
 * What a request for a project makes. Source: openshift/openshift-apiserver
 * pkg/project/apiserver/registry/projectrequest/delegated.
 */
import type { JsonObject, JsonValue } from '../../api/meta/object.ts';

const FORBIDDEN_NAMES = ['openshift', 'kubernetes', 'kube'];
const FORBIDDEN_PREFIXES = ['openshift-', 'kubernetes-', 'kube-'];

/** Why a project of this name cannot be requested; undefined: it may be requested. */
export function nameRefusal(name: string): string | undefined {
  if (FORBIDDEN_NAMES.includes(name)) return `cannot request a project with the name ${JSON.stringify(name)}`;
  const prefix = FORBIDDEN_PREFIXES.find((each) => name.startsWith(each));
  return prefix === undefined ? undefined : `cannot request a project starting with ${JSON.stringify(prefix)}`;
}

/** Parameters of the template, by OpenShift's names. */
export interface ProjectParameters {
  readonly PROJECT_NAME: string;
  readonly PROJECT_DISPLAYNAME: string;
  readonly PROJECT_DESCRIPTION: string;
  readonly PROJECT_ADMIN_USER: string;
  readonly PROJECT_REQUESTING_USER: string;
}

/** Where no template is configured: the project, and its requester as administrator. */
const DEFAULT_OBJECTS: readonly JsonObject[] = [
  {
    apiVersion: 'project.openshift.io/v1',
    kind: 'Project',
    metadata: {
      name: '${PROJECT_NAME}',
      annotations: {
        'openshift.io/description': '${PROJECT_DESCRIPTION}',
        'openshift.io/display-name': '${PROJECT_DISPLAYNAME}',
        'openshift.io/requester': '${PROJECT_REQUESTING_USER}',
      },
    },
  },
  {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'RoleBinding',
    metadata: { name: 'admin', namespace: '${PROJECT_NAME}' },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'admin' },
    subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: '${PROJECT_ADMIN_USER}' }],
  },
];

export interface ProjectTemplate {
  readonly objects?: readonly JsonObject[];
  readonly parameters?: readonly { readonly name?: string; readonly value?: string }[];
}

export interface ProjectObjects {
  readonly project: JsonObject;
  /** In the order in which they are created, behind the project. */
  readonly content: readonly JsonObject[];
}

const isProject = ({ apiVersion, kind }: JsonObject): boolean =>
  kind === 'Project' && apiVersion === 'project.openshift.io/v1';

/** A text: what is wrong with the template. */
export function projectObjects(
  template: ProjectTemplate | undefined,
  parameters: ProjectParameters,
): ProjectObjects | string {
  const values = new Map<string, string>();
  for (const { name = '', value = '' } of template?.parameters ?? []) values.set(name, value);
  for (const [name, value] of Object.entries(parameters)) values.set(name, value);
  const objects = (template?.objects ?? DEFAULT_OBJECTS).map((each) => filled(each, values) as JsonObject);
  const [project, ...further] = objects.filter(isProject);
  if (project === undefined) return 'must contain a project resource';
  if (further.length > 0) return 'must contain only one project resource';
  return { project, content: objects.filter((each) => !isProject(each)) };
}

/** Parameters within texts, once: a value that looks like a parameter stays as it is. */
function filled(value: JsonValue, values: ReadonlyMap<string, string>): JsonValue {
  if (typeof value === 'string')
    return value.replace(/\$\{([A-Za-z0-9_]+)\}/g, (whole, name: string) => values.get(name) ?? whole);
  if (Array.isArray(value)) return value.map((each) => filled(each, values));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, filled(each ?? null, values)]));
}
