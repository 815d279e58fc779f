/**
 * States of alerts: inactive, pending until the duration of `for` has passed, firing. Source: prometheus
 * rules/alerting.go.
 */
import type { Alert, Severity } from '../port.ts';
import { evaluateAlertExpression } from './evaluate.ts';
import { type Expression, parseExpression } from './expression.ts';
import { parsePromDuration } from './prom-duration.ts';
import { type AlertRule, ruleGroups } from './rules.ts';
import { keyOf, type Labels, type SampleStore } from './samples.ts';
import { parseTemplate, type Template } from './template.ts';

/** Rule whose expression and templates are parsed. */
export interface CompiledRule {
  readonly name: string;
  readonly expression: Expression;
  readonly forMs: number;
  readonly severity: Severity;
  readonly summary: Template;
  readonly fix: Template;
}

interface Active {
  readonly rule: CompiledRule;
  readonly labels: Labels;
  readonly sinceMs: number;
  value: number;
  isFiring: boolean;
}

export interface Transition {
  readonly alert: Alert;
  readonly to: 'firing' | 'resolved';
}

export interface Evaluation {
  readonly transitions: readonly Transition[];
  /** Error of each rule that could not be evaluated, by name of the rule. */
  readonly problems: ReadonlyMap<string, string>;
}

/** Parses a rule. Throws CodedError 'bad-rule' if it is invalid or not supported. */
export function compileRule({ alert, expr, for: wait = '0', labels, annotations }: AlertRule): CompiledRule {
  return {
    name: alert,
    expression: parseExpression(expr),
    forMs: parsePromDuration(wait) ?? 0,
    severity: labels.severity,
    summary: parseTemplate(annotations.summary),
    fix: parseTemplate(annotations.action),
  };
}

export const compiledRules = (): CompiledRule[] => ruleGroups.flatMap(({ rules }) => rules).map(compileRule);

const ORDER: readonly Severity[] = ['critical', 'warning', 'info'];
/** Maximum number of active alerts per rule, so that a label with many values cannot exhaust the memory. */
const MAX_ACTIVE = 100;

export class AlertTracker {
  readonly #rules: readonly CompiledRule[];
  readonly #active = new Map<string, Active>();

  constructor(rules: readonly CompiledRule[]) {
    this.#rules = rules;
  }

  /**
   * Evaluates all rules and updates the states of alerts. The alerts of a rule that cannot be evaluated do not change.
   *
   * @param nowMs Monotonic time, as in the samples.
   * @param wallMs Wall-clock time, for the times in alerts.
   */
  update(samples: SampleStore, nowMs: number, wallMs: number): Evaluation {
    const transitions: Transition[] = [];
    const problems = new Map<string, string>();
    const present = new Set<string>();
    for (const rule of this.#rules) {
      try {
        const value = evaluateAlertExpression(rule.expression, samples, nowMs);
        const elements = typeof value === 'number' ? [] : value.slice(0, MAX_ACTIVE);
        for (const element of elements) {
          const key = `${rule.name} ${keyOf(element.labels)}`;
          present.add(key);
          const active = this.#active.get(key) ?? {
            rule,
            labels: element.labels,
            sinceMs: nowMs,
            value: 0,
            isFiring: false,
          };
          active.value = element.value;
          this.#active.set(key, active);
          if (active.isFiring || nowMs - active.sinceMs < rule.forMs) continue;
          active.isFiring = true;
          transitions.push({ to: 'firing', alert: alertOf(active, nowMs, wallMs) });
        }
      } catch (error) {
        problems.set(rule.name, error instanceof Error ? error.message : String(error));
      }
    }
    for (const [key, active] of this.#active) {
      // An evaluation that failed does not show that the condition has ended, so the alerts keep their states.
      if (present.has(key) || problems.has(active.rule.name)) continue;
      this.#active.delete(key);
      if (active.isFiring) transitions.push({ to: 'resolved', alert: alertOf(active, nowMs, wallMs) });
    }
    return { transitions, problems };
  }

  alerts(nowMs: number, wallMs: number): Alert[] {
    return [...this.#active.values()]
      .map((active) => alertOf(active, nowMs, wallMs))
      .sort(
        (a, b) =>
          Number(b.state === 'firing') - Number(a.state === 'firing') ||
          ORDER.indexOf(a.severity) - ORDER.indexOf(b.severity) ||
          a.name.localeCompare(b.name),
      );
  }
}

function alertOf({ rule, labels, sinceMs, value, isFiring }: Active, nowMs: number, wallMs: number): Alert {
  return {
    name: rule.name,
    state: isFiring ? 'firing' : 'pending',
    severity: rule.severity,
    // The start is converted with the current clock, because the clock may have been corrected since the start.
    sinceMs: wallMs - (nowMs - sinceMs),
    summary: rule.summary(labels, value),
    fix: rule.fix(labels, value),
    labels: Object.fromEntries(labels),
    value,
  };
}
