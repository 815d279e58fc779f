/**
 * Validation of Windows options, which applies to pods of all operating systems. Source:
 * k8s.io/kubernetes/pkg/apis/core/validation validateWindowsSecurityContextOptions.
 */

import { dns1123SubdomainErrors } from '../../../base/names.ts';
import type { WindowsSecurityContextOptions } from '../../generated/core/v1.ts';
import { type FieldError, fieldError } from '../../meta/field-error.ts';
import { utf8Length } from '../../meta/validation.ts';
import { validateNameRule } from '../../validation/scalars.ts';

const MAX_SPEC_BYTES = 64 * 1024;
const MAX_DOMAIN = 256;
const MAX_TESTED = 4096;
const MAX_USER = 104;
const NETBIOS = /^[^\\/:*?"<>|.][^\\/:*?"<>|]{0,14}$/;
const DNS = /^[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?(?:\.[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?)*$/;
const FORBIDDEN_IN_USER = '"/\\:;|=,+*?<>@[]';

export function validateWindowsOptions(options: WindowsSecurityContextOptions | undefined, at: string): FieldError[] {
  if (options === undefined) return [];
  const { gmsaCredentialSpec: spec, gmsaCredentialSpecName: name, runAsUserName: user } = options;
  const errors: FieldError[] = [];
  if (name !== undefined)
    errors.push(...validateNameRule(name, dns1123SubdomainErrors, `${at}.gmsaCredentialSpecName`));
  const invalid = (field: string, value: string, why: string): void => {
    errors.push(fieldError.invalid(`${at}.${field}`, value, why));
  };
  if (spec === '') invalid('gmsaCredentialSpec', spec, 'gmsaCredentialSpec cannot be an empty string');
  else if (spec !== undefined && utf8Length(spec) > MAX_SPEC_BYTES)
    invalid('gmsaCredentialSpec', spec, `gmsaCredentialSpec size must be under ${MAX_SPEC_BYTES / 1024} KiB`);
  if (user !== undefined) for (const why of userProblems(user)) invalid('runAsUserName', user, why);
  return errors;
}

/** Validates Windows user names: `DOMAIN\user` or `user`. */
function userProblems(name: string): string[] {
  if (name === '') return ['runAsUserName cannot be an empty string'];
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what must not be there
  if (/[\u0000-\u001f\u007f]/.test(name)) return ['runAsUserName cannot contain control characters'];
  const parts = name.split('\\');
  if (parts.length > 2) return ['runAsUserName cannot contain more than one backslash'];
  const problems: string[] = [];
  const user = parts.at(-1) ?? '';
  if (parts.length === 2) problems.push(...domainProblems(parts[0] ?? ''));
  if (user === '') problems.push("runAsUserName's User cannot be empty");
  else if (user.length > MAX_USER)
    problems.push(`runAsUserName's User length must not be longer than ${MAX_USER} characters`);
  if (/^[. ]+$/.test(user)) problems.push("runAsUserName's User cannot contain only periods or spaces");
  if ([...user].some((each) => FORBIDDEN_IN_USER.includes(each)))
    problems.push(`runAsUserName's User cannot contain the following characters: ${FORBIDDEN_IN_USER}`);
  return problems;
}

function domainProblems(domain: string): string[] {
  const problems =
    domain.length >= MAX_DOMAIN ? [`runAsUserName's Domain length must be under ${MAX_DOMAIN} characters`] : [];
  // A domain that is too long for the patterns is reported without a match.
  if (domain.length > MAX_TESTED || !(NETBIOS.test(domain) || DNS.test(domain))) {
    problems.push("runAsUserName's Domain doesn't match the NetBios nor the DNS format");
  }
  return problems;
}
