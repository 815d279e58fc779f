/** Predicates and errors shared by plug-ins. */

import type { KubeObject } from '../../api/meta/object.ts';
import { ApiError } from '../../api/meta/status.ts';
import type { AdmissionRequest } from '../pipeline/admission.ts';

export const MIRROR_ANNOTATION = 'kubernetes.io/config.mirror';

/** Reports whether the request is for this built-in kind, and not for a custom resource with the same name. */
export function isFor(request: AdmissionRequest, group: string, plural: string): boolean {
  const { definition, plural: own } = request.kind;
  return definition.group === group && own === plural && definition.custom === undefined;
}

export function isMirrorPod(object: KubeObject | undefined): boolean {
  return Object.hasOwn(object?.metadata?.annotations ?? {}, MIRROR_ANNOTATION);
}

/** Error with the message `pods "a" is forbidden: …`, as upstream's admission.NewForbidden. */
export function forbid(request: AdmissionRequest, why: string): ApiError {
  const { group } = request.kind.definition;
  const { plural } = request.kind;
  const resource = group === '' ? plural : `${plural}.${group}`;
  const name =
    request.name === ''
      ? (request.object?.metadata?.name ?? request.object?.metadata?.generateName ?? '')
      : request.name;
  return new ApiError('Forbidden', `${resource} ${JSON.stringify(name)} is forbidden: ${why}`, {
    ...(name === '' ? {} : { name }),
    ...(group === '' ? {} : { group }),
    kind: plural,
  });
}

/** Like `forbid`, for messages in which upstream does not name the object. */
export function forbidWithoutName(request: AdmissionRequest, message: string): ApiError {
  return new ApiError('Forbidden', message, forbid(request, message).details);
}
