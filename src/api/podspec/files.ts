/**
 * Validation of files in volumes: keys of secrets and config maps, fields of the pod, tokens and certificates. Source:
 * k8s.io/kubernetes/pkg/apis/core/validation.
 */

import { dns1123SubdomainErrors } from '../../base/names.ts';
import type {
  ClusterTrustBundleProjection,
  DownwardAPIVolumeFile,
  KeyToPath,
  VolumeProjection,
} from '../generated/core/v1.ts';
import { type FieldError, fieldError } from '../meta/field-error.ts';
import { isSet } from '../meta/validation.ts';
import { validateLocalPath } from '../validation/scalars.ts';
import { validateLabelSelector } from '../validation/selectors.ts';
import { VOLUME_FIELD_PATHS, validateFieldRef, validateResourceFieldRef } from './containers/env.ts';

export function validateMode(mode: number | undefined, path: string): FieldError[] {
  return mode !== undefined && (mode > 0o777 || mode < 0)
    ? [fieldError.invalid(path, mode, 'must be a number between 0 and 0777 (octal), both inclusive')]
    : [];
}

export function validateItems(items: readonly KeyToPath[] | undefined, path: string): FieldError[] {
  const errors: FieldError[] = [];
  (items ?? []).forEach((item, index) => {
    const at = `${path}[${index}]`;
    if (!isSet(item.key)) errors.push(fieldError.required(`${at}.key`));
    if (!isSet(item.path)) errors.push(fieldError.required(`${at}.path`));
    else errors.push(...validateVolumePath(item.path, `${at}.path`));
    errors.push(...validateMode(item.mode, `${at}.mode`));
  });
  return errors;
}

/** Requires a relative path without `..` that does not collide with names of upstream's atomic writer. */
function validateVolumePath(path: string, at: string): FieldError[] {
  const errors = validateLocalPath(path, at);
  if (path.startsWith('..') && !path.startsWith('../') && path !== '..') {
    errors.push(fieldError.invalid(at, path, "must not start with '..'"));
  }
  return errors;
}

/** Validates files of a downward API volume. As upstream, errors of all files have the path `at`, without the index. */
export function validateDownwardItems(items: readonly DownwardAPIVolumeFile[] | undefined, at: string): FieldError[] {
  const errors: FieldError[] = [];
  for (const item of items ?? []) {
    if (!isSet(item.path)) errors.push(fieldError.required(`${at}.path`));
    else errors.push(...validateVolumePath(item.path, `${at}.path`));
    if (item.fieldRef !== undefined) {
      errors.push(...validateFieldRef(item.fieldRef, VOLUME_FIELD_PATHS, `${at}.fieldRef`));
      if (item.resourceFieldRef !== undefined) {
        errors.push(
          fieldError.invalid(at, 'resource', 'fieldRef and resourceFieldRef can not be specified simultaneously'),
        );
      }
    } else if (item.resourceFieldRef !== undefined) {
      errors.push(...validateResourceFieldRef(item.resourceFieldRef, `${at}.resourceFieldRef`, 'volume'));
    } else {
      errors.push(fieldError.required(at, 'one of fieldRef and resourceFieldRef is required'));
    }
    errors.push(...validateMode(item.mode, `${at}.mode`));
  }
  return errors;
}

/** Bounds for the lifetime of a projected token: ten minutes and 2^32 seconds. */
const MIN_TOKEN_SECONDS = 600;
const MAX_TOKEN_SECONDS = 2 ** 32;

/** Validates the sources of the projected volume at the path `at`. Two sources must not write the same file. */
export function validateProjections(sources: readonly VolumeProjection[] | undefined, at: string): FieldError[] {
  const errors: FieldError[] = [];
  const used = new Set<string>();
  const claim = (target: string | undefined, culprit: string | undefined): void => {
    if (!isSet(target)) return;
    if (used.has(target)) errors.push(fieldError.invalid(at, culprit ?? '', 'conflicting duplicate paths'));
    used.add(target);
  };
  (sources ?? []).forEach((source, index) => {
    const path = `${at}.sources[${index}]`;
    for (const field of ['secret', 'configMap'] as const) {
      const projection = source[field];
      if (projection === undefined) continue;
      if (!isSet(projection.name)) errors.push(fieldError.required(`${path}.${field}.name`));
      errors.push(...validateItems(projection.items, `${path}.${field}.items`));
      for (const item of projection.items ?? []) claim(item.path, projection.name);
    }
    if (source.downwardAPI !== undefined) {
      errors.push(...validateDownwardItems(source.downwardAPI.items, `${path}.downwardAPI`));
      for (const item of source.downwardAPI.items ?? []) claim(item.path, item.path);
    }
    if (source.serviceAccountToken !== undefined) {
      errors.push(...validateToken(source.serviceAccountToken, `${path}.serviceAccountToken`, at));
    }
    if (source.clusterTrustBundle !== undefined) {
      errors.push(...validateTrustBundle(source.clusterTrustBundle, `${path}.clusterTrustBundle`));
      claim(source.clusterTrustBundle.path, source.clusterTrustBundle.path);
    }
    if (Object.values(source).filter((each) => each !== undefined).length > 1) {
      errors.push(fieldError.forbidden(path, 'may not specify more than 1 volume type per source'));
    }
  });
  return errors;
}

function validateToken(
  token: NonNullable<VolumeProjection['serviceAccountToken']>,
  path: string,
  volume: string,
): FieldError[] {
  const errors: FieldError[] = [];
  const seconds = token.expirationSeconds ?? 0;
  const wrong = (why: string): void => {
    errors.push(fieldError.invalid(`${path}.expirationSeconds`, seconds, why));
  };
  if (seconds < MIN_TOKEN_SECONDS) wrong('may not specify a duration less than 10 minutes');
  if (seconds > MAX_TOKEN_SECONDS) wrong('may not specify a duration larger than 2^32 seconds');
  if (!isSet(token.path)) errors.push(fieldError.required(`${volume}.path`));
  else errors.push(...validateVolumePath(token.path, `${volume}.path`));
  return errors;
}

function validateTrustBundle(bundle: ClusterTrustBundleProjection, path: string): FieldError[] {
  const errors: FieldError[] = [];
  const { name, signerName, labelSelector } = bundle;
  if (name !== undefined && signerName !== undefined) {
    errors.push(fieldError.invalid(path, bundle, 'only one of name and signerName may be used'));
  } else if (name !== undefined) {
    if (name === '') errors.push(fieldError.required(`${path}.name`, 'must be a valid object name'));
    for (const why of trustBundleNameErrors(name)) {
      errors.push(fieldError.invalid(`${path}.name`, name, `not a valid clustertrustbundlename: ${why}`));
    }
    if (labelSelector !== undefined) {
      const why = 'labelSelector must be unset if name is specified';
      errors.push(fieldError.invalid(`${path}.labelSelector`, labelSelector, why));
    }
  } else if (signerName !== undefined) {
    if (signerName === '') errors.push(fieldError.required(`${path}.signerName`, 'must be a valid signer name'));
    errors.push(...validateLabelSelector(labelSelector, `${path}.labelSelector`));
  } else errors.push(fieldError.required(path, 'either name or signerName must be specified'));
  if (!isSet(bundle.path)) errors.push(fieldError.required(`${path}.path`));
  else errors.push(...validateVolumePath(bundle.path, `${path}.path`));
  return errors;
}

/** Names of ClusterTrustBundles: `example.com:signer:name` if they belong to a signer, otherwise a plain name. */
function trustBundleNameErrors(name: string): string[] {
  return dns1123SubdomainErrors(name.includes(':') ? name.slice(name.lastIndexOf(':') + 1) : name);
}
