/**
 * Computes the objects that a project request creates. Source: openshift/openshift-apiserver
 * pkg/project/apiserver/registry/projectrequest/delegated.
 */
import type { JsonObject } from '../../../api/meta/object.ts';
import { processTemplate, type TemplateBody } from './process.ts';

const FORBIDDEN_NAMES = ['openshift', 'kubernetes', 'kube'];
const FORBIDDEN_PREFIXES = ['openshift-', 'kubernetes-', 'kube-'];

/** Reason why a project with this name cannot be requested; undefined if it can. */
export function nameRefusal(name: string): string | undefined {
  if (FORBIDDEN_NAMES.includes(name)) return `cannot request a project with the name ${JSON.stringify(name)}`;
  const prefix = FORBIDDEN_PREFIXES.find((each) => name.startsWith(each));
  return prefix === undefined ? undefined : `cannot request a project starting with ${JSON.stringify(prefix)}`;
}

/** Parameters of the project template. The names are the same as in OpenShift. */
export interface ProjectParameters {
  readonly PROJECT_NAME: string;
  readonly PROJECT_DISPLAYNAME: string;
  readonly PROJECT_DESCRIPTION: string;
  readonly PROJECT_ADMIN_USER: string;
  readonly PROJECT_REQUESTING_USER: string;
}

/** Reference to a parameter, as it is written in a text. */
const parameter = (name: keyof ProjectParameters): string => `$\{${name}}`;

/** Objects of the default template: the project, and a role binding that makes its requester an administrator. */
const DEFAULT_OBJECTS: readonly JsonObject[] = [
  {
    apiVersion: 'project.openshift.io/v1',
    kind: 'Project',
    metadata: {
      name: parameter('PROJECT_NAME'),
      annotations: {
        'openshift.io/description': parameter('PROJECT_DESCRIPTION'),
        'openshift.io/display-name': parameter('PROJECT_DISPLAYNAME'),
        'openshift.io/requester': parameter('PROJECT_REQUESTING_USER'),
      },
    },
  },
  {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'RoleBinding',
    metadata: { name: 'admin', namespace: parameter('PROJECT_NAME') },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'admin' },
    subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: parameter('PROJECT_ADMIN_USER') }],
  },
];

export interface ProjectObjects {
  readonly project: JsonObject;
  /** Objects to create after the project, in order. */
  readonly content: readonly JsonObject[];
}

const isProject = ({ apiVersion, kind }: JsonObject): boolean =>
  kind === 'Project' && apiVersion === 'project.openshift.io/v1';

/**
 * Computes the objects, or returns an error message if the template is invalid. `random` returns a number uniformly
 * distributed in [0, 1).
 */
export function projectObjects(
  template: TemplateBody | undefined,
  parameters: ProjectParameters,
  random: () => number,
): ProjectObjects | string {
  const own = new Map<string, string>(Object.entries(parameters));
  const declared = template?.parameters ?? [...own.keys()].map((name) => ({ name }));
  const body = {
    ...template,
    objects: template?.objects ?? DEFAULT_OBJECTS,
    parameters: declared.map((each) => {
      const value = own.get(each.name ?? '');
      return value === undefined ? each : { name: each.name ?? '', value };
    }),
  };
  const result = processTemplate(body, random);
  if ('errors' in result) return result.errors.map(({ field, message }) => `${field}: ${message}`).join(', ');
  const { objects } = result.processed;
  const [project, ...further] = objects.filter(isProject);
  if (project === undefined) return 'must contain a project resource';
  if (further.length > 0) return 'must contain only one project resource';
  return { project, content: objects.filter((each) => !isProject(each)) };
}
