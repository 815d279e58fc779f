/**
 * Project requests. The response to a create is the new project; the request itself is not stored. Source:
 * openshift/api project/v1; openshift/openshift-apiserver pkg/project/apis/project/validation.
 */
import { type FieldError, fieldError } from '../../../../api/meta/field-error.ts';
import type { KubeObject } from '../../../../api/meta/object.ts';
import { isSet } from '../../../../api/meta/validation.ts';
import type { KindDefinition } from '../../../../api/registry/definition.ts';

export interface ProjectRequest extends KubeObject {
  displayName?: string;
  description?: string;
}

/**
 * Minimum length, as in OpenShift. With shorter names, names that are derived from the project's name would be
 * ambiguous.
 */
const MIN_NAME_LENGTH = 2;
const MAX_NAME_LENGTH = 63;
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for.
const CONTROL = /[\u0000-\u001f\u007f]/;

function validate({ metadata, displayName }: ProjectRequest): FieldError[] {
  const errors: FieldError[] = [];
  const name = metadata?.name ?? '';
  if (!isSet(name)) errors.push(fieldError.required('metadata.name', 'name or generateName is required'));
  else if (name.length < MIN_NAME_LENGTH)
    errors.push(fieldError.invalid('metadata.name', name, `must be at least ${MIN_NAME_LENGTH} characters long`));
  else if (name.length > MAX_NAME_LENGTH || !/^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/.test(name)) {
    const detail =
      "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
    errors.push(
      fieldError.invalid(
        'metadata.name',
        name,
        name.length > MAX_NAME_LENGTH ? `must be no more than ${MAX_NAME_LENGTH} characters` : detail,
      ),
    );
  }
  if (displayName !== undefined && CONTROL.test(displayName))
    errors.push(fieldError.invalid('displayName', displayName, 'may not contain a new line or tab'));
  return errors;
}

export const projectRequests: KindDefinition<ProjectRequest> = {
  group: 'project.openshift.io',
  version: 'v1',
  kind: 'ProjectRequest',
  plural: 'projectrequests',
  singular: 'projectrequest',
  listKind: 'ProjectRequestList',
  namespaced: false,
  verbs: ['create', 'list'],
  schemaName: 'com.github.openshift.api.project.v1.ProjectRequest',
  storagePrefix: '',
  isComputed: true,
  strategy: { validate },
  columns: [],
};
