/** Validation of probes and lifecycle handlers. Source: k8s.io/kubernetes/pkg/apis/core/validation. */

import { httpHeaderNameErrors } from '../../../base/names.ts';
import type {
  ExecAction,
  GRPCAction,
  HTTPGetAction,
  Lifecycle,
  Probe,
  TCPSocketAction,
} from '../../generated/core/v1.ts';
import { type FieldError, fieldError } from '../../meta/field-error.ts';
import { isSet } from '../../meta/validation.ts';
import {
  validateNameRule,
  validateNonNegative,
  validateOneOf,
  validatePortNumber,
  validatePortNumberOrName,
} from '../../validation/scalars.ts';

interface Handler {
  readonly exec?: ExecAction;
  readonly httpGet?: HTTPGetAction;
  readonly tcpSocket?: TCPSocketAction;
  readonly grpc?: GRPCAction;
  readonly sleep?: { readonly seconds: number };
}

type ProbeKind = 'livenessProbe' | 'readinessProbe' | 'startupProbe';

/** Validates a probe. `graceSeconds`: terminationGracePeriodSeconds of the pod, the upper bound of a sleep. */
export function validateProbe(
  probe: Probe | undefined,
  kind: ProbeKind,
  path: string,
  graceSeconds: number | undefined,
): FieldError[] {
  if (probe === undefined) return [];
  const errors = validateHandler(probe, path, graceSeconds);
  errors.push(...validateNonNegative(probe.initialDelaySeconds, `${path}.initialDelaySeconds`));
  errors.push(...validateNonNegative(probe.timeoutSeconds, `${path}.timeoutSeconds`));
  errors.push(...validateNonNegative(probe.periodSeconds, `${path}.periodSeconds`));
  errors.push(...validateNonNegative(probe.successThreshold, `${path}.successThreshold`));
  errors.push(...validateNonNegative(probe.failureThreshold, `${path}.failureThreshold`));
  const grace = probe.terminationGracePeriodSeconds;
  if (kind === 'readinessProbe') {
    if (grace !== undefined) {
      errors.push(
        fieldError.invalid(`${path}.terminationGracePeriodSeconds`, grace, 'must not be set for readinessProbes'),
      );
    }
    return errors;
  }
  if (grace !== undefined && grace <= 0) {
    errors.push(fieldError.invalid(`${path}.terminationGracePeriodSeconds`, grace, 'must be greater than 0'));
  }
  if ((probe.successThreshold ?? 1) !== 1) {
    errors.push(fieldError.invalid(`${path}.successThreshold`, probe.successThreshold, 'must be 1'));
  }
  return errors;
}

export function validateLifecycle(
  lifecycle: Lifecycle | undefined,
  path: string,
  graceSeconds: number | undefined,
): FieldError[] {
  const errors: FieldError[] = [];
  if (lifecycle?.postStart !== undefined) {
    errors.push(...validateHandler(lifecycle.postStart, `${path}.postStart`, graceSeconds));
  }
  if (lifecycle?.preStop !== undefined) {
    errors.push(...validateHandler(lifecycle.preStop, `${path}.preStop`, graceSeconds));
  }
  return errors;
}

function validateHandler(handler: Handler, path: string, graceSeconds: number | undefined): FieldError[] {
  const errors: FieldError[] = [];
  let handlers = 0;
  /** Returns true for the first handler and reports an error for every further one. */
  const only = (name: string): boolean => {
    handlers++;
    if (handlers > 1) errors.push(fieldError.forbidden(`${path}.${name}`, 'may not specify more than 1 handler type'));
    return handlers === 1;
  };
  if (handler.exec !== undefined && only('exec') && (handler.exec.command ?? []).length === 0) {
    errors.push(fieldError.required(`${path}.exec.command`));
  }
  if (handler.httpGet !== undefined && only('httpGet')) {
    errors.push(...validateHttpGet(handler.httpGet, `${path}.httpGet`));
  }
  if (handler.tcpSocket !== undefined && only('tcpSocket')) {
    errors.push(...validatePortNumberOrName(handler.tcpSocket.port, `${path}.tcpSocket.port`));
  }
  if (handler.grpc !== undefined && only('grpc')) {
    errors.push(...validatePortNumber(handler.grpc.port, `${path}.grpc.port`));
  }
  if (handler.sleep !== undefined && only('sleep')) {
    const seconds = handler.sleep.seconds ?? 0;
    if (graceSeconds !== undefined && (seconds < 0 || seconds > graceSeconds)) {
      errors.push(
        fieldError.invalid(
          `${path}.sleep`,
          seconds,
          `must be non-negative and less than terminationGracePeriodSeconds (${graceSeconds})`,
        ),
      );
    }
  }
  if (handlers === 0) errors.push(fieldError.required(path, 'must specify a handler type'));
  return errors;
}

function validateHttpGet(action: HTTPGetAction, path: string): FieldError[] {
  const errors: FieldError[] = [];
  if (!isSet(action.path)) errors.push(fieldError.required(`${path}.path`));
  errors.push(...validatePortNumberOrName(action.port, `${path}.port`));
  errors.push(...validateOneOf(action.scheme, ['HTTP', 'HTTPS'], `${path}.scheme`));
  (action.httpHeaders ?? []).forEach((header) => {
    errors.push(...validateNameRule(header.name ?? '', httpHeaderNameErrors, `${path}.httpHeaders`));
  });
  return errors;
}
