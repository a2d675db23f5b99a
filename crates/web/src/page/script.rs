//! The script bundles: one that blocks the parser, as consent managers and experiments do, and two deferred ones.
//!
//! They run: modules register themselves, the page's own code asks for some of them and draws the tide chart with their help.

use std::fmt::Write;

use super::random::Random;
use super::text::{WORDS, paragraph};

/// A registry of modules, and the settings that a blocking script exists for.
const HEAD: &str = r#"window.tideline={modules:{},made:{},define:function(name,needs,make){this.modules[name]={needs:needs,make:make}},
require:function(name){var known=this.made[name];if(known)return known;var module=this.modules[name],self=this;
return this.made[name]=module.make.apply(null,module.needs.map(function(need){return self.require(need)}))}};
document.documentElement.className+=" js";
document.documentElement.style.setProperty("--started",String(Math.round(performance.now())));
"#;

/// Uses some of the modules and draws the chart of today's tide.
const APP: &str = r##"addEventListener("DOMContentLoaded",function(){
var names=Object.keys(tideline.modules),sum=0;
for(var i=0;i<names.length;i+=9)sum+=tideline.require(names[i]).weigh(i%13,i%7)%11;
var canvas=document.getElementById("tide");if(!canvas)return;
var pen=canvas.getContext("2d"),w=canvas.width=canvas.clientWidth*2,h=canvas.height=300;
pen.fillStyle="#e3eff4";pen.strokeStyle="#0f5e7c";pen.lineWidth=4;pen.beginPath();pen.moveTo(0,h);
for(var x=0;x<=w;x+=4){var t=x/w*6.283*2;pen.lineTo(x,h/2-Math.sin(t)*h*.3-Math.sin(t*.5+sum%3)*h*.08)}
pen.lineTo(w,h);pen.fill();pen.stroke()});
"##;

/// `head.js`, which blocks the parser: `size` bytes or a module more.
pub(super) fn head(random: &mut Random, size: usize) -> String {
    grow(HEAD.to_owned(), "head", random, size)
}

/// `vendor.js`, deferred: libraries.
pub(super) fn vendor(random: &mut Random, size: usize) -> String {
    grow(String::new(), "vendor", random, size)
}

/// `app.js`, deferred: the page's own code with the texts that its search would look through.
pub(super) fn app(random: &mut Random, size: usize) -> String {
    let mut script = String::from("tideline.index=[\n");
    while script.len() < size / 3 {
        let _ = writeln!(script, "{{id:{},text:{:?}}},", random.below(1 << 20), paragraph(random, 2));
    }
    script.push_str("];\n");
    let mut script = grow(script, "app", random, size - APP.len());
    script.push_str(APP);
    script
}

fn grow(mut script: String, bundle: &str, random: &mut Random, size: usize) -> String {
    let mut number = 0;
    while script.len() < size {
        module(&mut script, bundle, number, random);
        number += 1;
    }
    script
}

/// One module: a table, a few functions over it, and `weigh`, which every module has. It may need one made before it.
fn module(script: &mut String, bundle: &str, number: u64, random: &mut Random) {
    let needs = if number > 0 { format!("\"{bundle}-{}\"", random.below(number)) } else { String::new() };
    let _ = writeln!(script, "tideline.define(\"{bundle}-{number}\",[{needs}],function(base){{");
    let table: Vec<String> = (0..8 + random.below(16)).map(|_| random.below(10_000).to_string()).collect();
    let _ = writeln!(script, "var table=[{}];", table.join(","));
    let mut names = Vec::new();
    for index in 0..2 + random.below(4) {
        let (what, how) = (random.pick(&WORDS), random.pick(&WORDS));
        let name = format!("{what}{index}{how}");
        let (first, second) = (random.below(97) + 2, random.below(9_000) + 911);
        let _ = match random.below(3) {
            0 => writeln!(
                script,
                "function {name}({what},{how}_){{var sum={first};for(var i=0;i<table.length;i++){{\
                 sum=(sum*{what}+table[i]-{how}_)%{second}}}return sum}}"
            ),
            1 => writeln!(
                script,
                "function {name}({what},{how}_){{if({what}>{first}){{return Math.max({what}-{how}_,{second})}}\
                 return table.filter(function(entry){{return entry>{what}*{first}}}).length+{how}_}}"
            ),
            _ => writeln!(
                script,
                "function {name}({what},{how}_){{var {how}Map={{near:{what}%{first},far:{how}_*{first},limit:{second}}};\
                 return Object.keys({how}Map).reduce(function(sum,key){{return sum+{how}Map[key]}},0)}}"
            ),
        };
        names.push(name);
    }
    let calls: Vec<String> = names.iter().map(|name| format!("{name}(a,b)")).collect();
    let exports: Vec<String> = names.iter().map(|name| format!("{name}:{name}")).collect();
    let _ = writeln!(
        script,
        "return{{weigh:function(a,b){{return({}+(base?1:0))|0}},{}}}}});",
        calls.join("+"),
        exports.join(",")
    );
}
